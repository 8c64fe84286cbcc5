"""The entry point: the typer app; it turns every error into a line on stderr and an exit code of `redsched.errors`."""

import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from redsched.cli.groups import RootGroup
from redsched.errors import InvalidRequest, NotConfirmed, NoValidHost, RedschedError

if TYPE_CHECKING:
    from redsched.model.records.problems import FailedAttempt

INTERRUPTED = 130
DISK_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
ATTEMPT_HEADS = ("TIME", "CLAIM", "HOST", "KIND")
COMPLETION_VARIABLE = "_REDSCHED_COMPLETE"
"""The variable that shells set to request completions; typer derives its name from the program's."""

app = typer.Typer(
    name="redsched",
    cls=RootGroup,
    help="A shared-state scheduler on Redis: which host takes this, and is it really mine?",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # imported here, because no other command needs it

        typer.echo(f"redsched {version('redsched')}")
        raise typer.Exit


@app.callback()
def _root(
    show: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A shared-state scheduler on Redis: which host takes this, and is it really mine?"""


def main() -> None:
    """Run the command line of this process and exit."""
    gc.disable()  # until the command begins (`context.settings_for`): what imports create stays anyway
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. No user error ends in a traceback."""
    try:
        return _run(arguments)
    except RedschedError as error:
        return _refused(error)
    except ModuleNotFoundError as error:
        from redsched.extras import missing

        if (found := missing(error, arguments[0] if arguments else "")) is None:
            raise
        return _refused(found)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        if COMPLETION_VARIABLE in os.environ:
            raise  # a shell requests completions, and reads the exit code
        # The reader (head, less) has closed the pipe. Typer turns only that into SystemExit, if it is raised inside it.
        _drop_output()
        return 0
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        _drop_output()
        return _fail(f"the output cannot be written: {error.strerror}", RedschedError.exit_code)


def _drop_output() -> None:
    """Write nothing more: output that is still buffered would be written again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str]) -> int:
    try:
        found = app(list(arguments), prog_name="redsched", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return InvalidRequest.exit_code  # the help has been shown
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "redsched"
        said = error.format_message().replace(": Value error, ", ": ").rstrip(".")  # pydantic's words
        return _fail(f"{said} (`{command} --help` shows how)", InvalidRequest.exit_code)
    return found if isinstance(found, int) else 0


def _refused(error: RedschedError) -> int:
    attempts = error.facts.failed_attempts if isinstance(error, NotConfirmed) else None
    if not attempts:
        # Over the store, the text names the request that a host keeps something for.
        detail = error.facts.named(error.detail) if isinstance(error, NoValidHost) else error.detail
        return _fail(detail, error.exit_code)
    claim_ids = list(dict.fromkeys(one.claim_id for one in attempts))
    which = f"claim {claim_ids[0]} was" if len(claim_ids) == 1 else f"claims {', '.join(claim_ids)} were"
    _fail(f"{which} not active in time; everything that was claimed is released", error.exit_code)
    _show_attempts(attempts)
    return error.exit_code


def _show_attempts(attempts: "Sequence[FailedAttempt]") -> None:
    """Show the attempts of each claim on stderr, oldest first: stdout is reserved for the requested output."""
    from redsched.cli.output import formats, tables  # they take long to load, and --help needs none
    from redsched.model.claims import one_line

    found = sorted(attempts, key=lambda one: (one.claim_id, one.at_ms))
    rows = ((formats.At(one.at_ms), one.claim_id, one.host, one.kind) for one in found)
    with redirect_stdout(sys.stderr):
        tables.show_table(ATTEMPT_HEADS, rows, "", [one_line(one.reason) for one in found])


def _fail(message: str, exit_code: int) -> int:
    print(f"redsched: {' '.join(message.split())}", file=sys.stderr)
    return exit_code
