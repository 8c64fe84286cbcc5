"""Groups of commands that import a command's module only when that command is called."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from operator import attrgetter
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from redsched.cli.commands import NOUNS, VERBS, Entry, Noun, plural

CLOSEST = 3
"""Commands that are suggested at most for an unknown one."""


def load(name: str, entry: Entry) -> Any:
    """Import a command's function and return the command that typer makes of it."""
    function = attrgetter(entry.function.partition(":")[2])(import_module(entry.module))
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name)(function)
    return get_command(app)


class LazyCommand(TyperCommand):
    """A command that is known by its name and help until it is called."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.help)
        self._entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Parse the arguments by the command itself, which the context then leads to."""
        return load(self.name or "", self._entry).make_context(info_name, args, parent, **extra)


class Group(TyperGroup):
    """A group that suggests the nearest commands for an unknown one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find a command by its name. Raises typer's usage error, with what may have been meant."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}.{_did_you_mean(nearest(args[0], self.reachable()))}")
        return super().resolve_command(ctx, args)

    def reachable(self) -> Mapping[str, list[str]]:
        """What may be typed, and the commands that are meant by it."""
        return {name: [name] for name in self.commands}


class NounGroup(Group):
    """The commands of a noun."""

    def __init__(self, name: str, noun: Noun) -> None:
        commands = [LazyCommand(verb, entry) for verb, entry in noun.verbs.items()]
        super().__init__(name=name, commands=commands, help=noun.help, no_args_is_help=True)

    def reachable(self) -> Mapping[str, list[str]]:
        """The verbs, which are meant with the noun before them."""
        return {verb: [f"{self.name} {verb}"] for verb in self.commands}


class PluralGroup(NounGroup):
    """The same by the noun's plural, which lists where no verb follows: `redsched hosts --zone az1`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with `list` before them where they begin with an option of it."""
        lists = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if lists and not ctx.resilient_parsing else args)


class RootGroup(Group):
    """All commands: nouns, which also have their plurals, and commands of one word."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: NounGroup(name, noun) for name, noun in NOUNS.items()}
        self.commands |= {name: LazyCommand(name, entry) for name, entry in VERBS.items()}
        self._plurals = {plural(name): PluralGroup(plural(name), noun) for name, noun in NOUNS.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command or group of a name, which may be a noun's plural; None where there is none."""
        return self._plurals.get(cmd_name) or super().get_command(ctx, cmd_name)

    def reachable(self) -> Mapping[str, list[str]]:
        """What may be typed; a verb without its noun means that of each noun which has it."""
        verbs = dict.fromkeys(verb for noun in NOUNS.values() for verb in noun.verbs)
        having = {verb: [f"{name} {verb}" for name, noun in NOUNS.items() if verb in noun.verbs] for verb in verbs}
        return having | {name: [name] for name in self._plurals} | dict(super().reachable())


def nearest(typed: str, reachable: Mapping[str, list[str]]) -> list[str]:
    """Return the commands whose names are most like what was typed; none where nothing is."""
    return [command for name in get_close_matches(typed, reachable, CLOSEST) for command in reachable[name]][:CLOSEST]


def _did_you_mean(commands: list[str]) -> str:
    return f" Did you mean {' or '.join(f'`{one}`' for one in commands)}?" if commands else ""
