"""The way in: the typer app, and every error as one line on stderr and an exit code of `redsched.errors`."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from redsched.cli import archive, audit, claim_verbs, claims, declared, events, hosts, quotas, service, store
from redsched.cli.up import command
from redsched.errors import InvalidRequest, RedschedError

INTERRUPTED = 130

app = typer.Typer(
    name="redsched",
    help="A shared-state scheduler on Redis: which host takes this, and is it really mine?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for commands in (command, service, hosts, claims, claim_verbs, declared, quotas, store, audit, events, archive):
    commands.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redsched {version('redsched')}")
        raise typer.Exit


@app.callback()
def _root(
    show: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """A shared-state scheduler on Redis: which host takes this, and is it really mine?"""


def main() -> None:
    """Run the command line of this process, and end it."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command. Returns its exit code; nothing a user can cause is a traceback."""
    try:
        return _run(arguments)
    except RedschedError as error:
        return _fail(error.detail, error.exit_code)
    except ValidationError as error:
        return _fail(_setting_problem(error), InvalidRequest.exit_code)
    except SettingsError as error:
        return _fail(f"{error}: correct or unset it in the environment", InvalidRequest.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader (head, less) has seen enough; typer turns that into SystemExit where it meets it, and nothing else.
        # What is still buffered must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(arguments: Sequence[str]) -> int:
    try:
        found = app(list(arguments), prog_name="redsched", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return InvalidRequest.exit_code  # the help has been shown
        return _fail(f"{error.format_message()} (`redsched --help` shows how)", InvalidRequest.exit_code)
    return found if isinstance(found, int) else 0


def _fail(said: str, exit_code: int) -> int:
    print(f"redsched: {' '.join(said.split())}", file=sys.stderr)
    return exit_code


def _setting_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    name = f"REDSCHED_{str(first['loc'][0]).upper()}" if first["loc"] else "the settings"
    return f"{name}: {first['msg']}, not {str(first['input'])[:80]!r}: correct or unset it in the environment"
