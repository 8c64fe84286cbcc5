"""Groups of commands that import a command's module only when that command is called."""

from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from importlib import import_module
from inspect import signature
from operator import attrgetter
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from redsched.cli.commands import ELSEWHERE, ELSEWHERE_OF, NOUNS, PANELS, VERBS, Entry, Noun, plural

CLOSEST = 3
"""The most commands that are suggested for an unknown one."""
LABELS: Mapping[Any, str] = {bool: "", str: "TEXT", int: "NUMBER"}
"""What the help shows for the value of an option, by its type. A flag has no value."""


def load(name: str, entry: Entry) -> Any:
    """Import a command's function and return typer's command for it."""
    function = attrgetter(entry.function.partition(":")[2])(import_module(entry.module))
    if "where" in signature(function).parameters:
        function = with_where(function)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name, cls=WithCommandLine if "command" in signature(function).parameters else Command)(function)
    return get_command(app)


def with_where(function: Any) -> Any:
    """Return a command's function with the options that name a fleet instead of its argument `where`."""
    from redsched.cli.fleet import Where
    from redsched.cli.options import takes  # loads pydantic, which `--help` does not need

    return takes(Where, "where")(function)


class WithoutPythonTypes:
    """A command or group whose help has no types of Python: nothing for a flag, TEXT for a text."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters with the labels of their values."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc] # of the class that it is mixed into
        for one in found:
            if one.metavar is None:
                one.metavar = _label(one.type_descriptor.annotation)
        return found


def _label(type_: Any) -> str | None:
    """Return what the help shows for a value of this type; None for what typer shows."""
    item = get_args(type_)[0] if get_origin(type_) is list else type_
    if isinstance(item, type) and issubclass(item, Enum):
        return "|".join(str(one.value) for one in item)
    return LABELS.get(item)


class Command(WithoutPythonTypes, TyperCommand):
    """A command."""


class WithCommandLine(Command):
    """A command that takes a command line behind `--`, as its parameter `command`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage, with the command line at its end."""
        return [*super().collect_usage_pieces(ctx), "-- COMMAND [ARGUMENT]..."]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments before `--`; all words behind it are the command line's, also those with dashes."""
        at = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*args[:at], *(f"--command={word}" for word in args[at + 1 :])])


class LazyCommand(Command):
    """A command of which only name and help are known until it is called."""

    def __init__(self, name: str, entry: Entry, panel: str | None = None) -> None:
        super().__init__(name, help=entry.help, rich_help_panel=panel)
        self._entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the command and let it parse the arguments; the returned context refers to it."""
        return load(self.name or "", self._entry).make_context(info_name, args, parent, **extra)


class Group(WithoutPythonTypes, TyperGroup):
    """A group that suggests the nearest commands for an unknown one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find a command by its name. Raises typer's usage error, with suggestions."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}.{self.suggestion(args[0])}")
        return super().resolve_command(ctx, args)

    def suggestion(self, typed: str) -> str:
        """Return a sentence with the nearest commands, after a space; '' if none is close."""
        return _suggestion(nearest(typed, self.reachable()))

    def reachable(self) -> Mapping[str, list[str]]:
        """Return the words that may be typed, each with the commands that it may mean."""
        return {name: [name] for name in self.commands}


class NounGroup(Group):
    """The commands of a noun."""

    def __init__(self, name: str, noun: Noun, panel: str | None = None) -> None:
        commands = [LazyCommand(verb, entry) for verb, entry in noun.verbs.items()]
        super().__init__(name=name, commands=commands, help=noun.help, no_args_is_help=True, rich_help_panel=panel)
        self._elsewhere = next((ELSEWHERE_OF.get(one, {}) for one, known in NOUNS.items() if known is noun), {})

    def suggestion(self, typed: str) -> str:
        """Return a sentence with the commands for a verb of another scheduler, or else with the nearest ones."""
        return _translation(self._elsewhere, typed) or super().suggestion(typed)

    def reachable(self) -> Mapping[str, list[str]]:
        """Return the verbs, each with its full command."""
        return {verb: [f"{self.name} {verb}"] for verb in self.commands}


class PluralGroup(NounGroup):
    """The commands of a noun under its plural, which lists if no verb follows: `redsched hosts --zone az1`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with `list` before them if they start with an option or are empty."""
        if "list" not in self.commands:
            return super().parse_args(ctx, args)
        lists = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if lists and not ctx.resilient_parsing else args)


class RootGroup(Group):
    """All commands: nouns with their plurals, and commands of one word."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: _child(name, panel) for panel, names in PANELS.items() for name in names}
        self._plurals = {plural(name): PluralGroup(plural(name), noun) for name, noun in NOUNS.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command or group of a name, which may be a noun's plural; None if there is none."""
        return self._plurals.get(cmd_name) or super().get_command(ctx, cmd_name)

    def suggestion(self, typed: str) -> str:
        """Return a sentence with the commands for a word of another scheduler, or else with the nearest ones."""
        return _translation(ELSEWHERE, typed) or super().suggestion(typed)

    def reachable(self) -> Mapping[str, list[str]]:
        """Return the words that may be typed; a verb without its noun may mean that verb of any noun."""
        verbs = dict.fromkeys(verb for noun in NOUNS.values() for verb in noun.verbs)
        having = {verb: [f"{name} {verb}" for name, noun in NOUNS.items() if verb in noun.verbs] for verb in verbs}
        return having | {name: [name] for name in self._plurals} | dict(super().reachable())


def _child(name: str, panel: str) -> NounGroup | LazyCommand:
    return NounGroup(name, NOUNS[name], panel) if name in NOUNS else LazyCommand(name, VERBS[name], panel)


def _translation(words: Mapping[str, tuple[str, ...]], typed: str) -> str:
    """Return a sentence with the commands for a word, after a space; '' if it is none of these words."""
    commands = words.get(typed, ())
    return f" Use {' or '.join(f'`redsched {one}`' for one in commands)}." if commands else ""


def nearest(typed: str, reachable: Mapping[str, list[str]]) -> list[str]:
    """Return the commands whose names are closest to the typed word; an empty list if none is close."""
    return [command for name in get_close_matches(typed, reachable, CLOSEST) for command in reachable[name]][:CLOSEST]


def _suggestion(commands: list[str]) -> str:
    return f" Did you mean {' or '.join(f'`{one}`' for one in commands)}?" if commands else ""
