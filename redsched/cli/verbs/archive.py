"""`redsched export`, `import` and `replay`: write a cell as JSON lines, and read it back."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from redsched.cli import tables
from redsched.cli.context import settings_for
from redsched.cli.options import AsJson, Url
from redsched.cli.scheduler import with_scheduler
from redsched.errors import InvalidRequest
from redsched.model.validation import check_name
from redsched.scheduler.backup import archive as archives
from redsched.scheduler.backup.archive import Archive
from redsched.scheduler.backup.replay import MAX_CLAIMS
from redsched.scheduler.backup.replay import replay as replay_archive
from redsched.store.embedded.server import PrivateServer
from redsched.yaml_io import read_text

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="File written by `redsched export`; - for stdin.")]
HEADS = ("POLICY", "PLACED", "REFUSED", "HOSTS", "GUESSED")
OWN_POLICY = "their own"


def export(
    output: Annotated[str, typer.Option("--output", metavar="FILE", help="File to write to. Default: stdout.")] = "",
    cell: Annotated[str, typer.Option("--cell", help="Cell to export, if there are several.", show_default=False)] = "",
    url: Url = "",
) -> None:
    """Export a cell as JSON lines: declared objects, hosts, claims and their requests."""
    name = check_name("cell", cell) if cell else ""
    archive = with_scheduler(url, lambda s: s.export(name), read_only=True)
    text = "".join(f"{line}\n" for line in archives.archive_lines(archive))
    if output:
        _write(Path(output), text)
    else:
        sys.stdout.write(text)
    if not archive.head.consistent:
        print(
            f"redsched: cell {archive.head.cell} changed while it was read (seq {archive.head.seq} to "
            f"{archive.head.seq_after}): the file is not a consistent snapshot",
            file=sys.stderr,
        )


def import_file(
    file: FileArgument,
    declared: Annotated[bool, typer.Option("--declared", help="Import only declared objects, into any cell.")] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Import an exported cell.

    The cell must be empty, except with --declared, which imports declared objects into any cell.
    """
    archive = read_archive(file)
    found = with_scheduler(url, lambda s: s.import_(archive, declared))
    if as_json:
        return tables.show_json({"imported": found.counts, "notes": found.notes})
    print(
        f"cell {archive.head.cell}: " + ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in found.counts.items())
    )
    for note in found.notes:
        print(f"note: {note}")
    return None


def replay(
    file: FileArgument,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", help="Weigh by this policy instead of the claims' own. Repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replay the claims of an exported cell on a private store, and count the placements."""
    archive = read_archive(file)
    if len(archive.claims) > MAX_CLAIMS:
        raise InvalidRequest(
            f"{file} has {len(archive.claims)} claims, and at most {MAX_CLAIMS} can be replayed: remove some"
        )
    settings = settings_for()
    found = []
    for one in policy or [""]:
        with PrivateServer.start() as server:
            found.append(uvloop.run(replay_archive(server.url, archive, settings, one)))
    if as_json:
        names = ("policy", "placed", "refused", "hosts", "guessed")
        return tables.show_json({"replays": [{name: getattr(one, name) for name in names} for one in found]})
    rows = ((one.policy or OWN_POLICY, one.placed, one.refused, one.hosts, one.guessed) for one in found)
    tables.show_table(HEADS, rows, "nothing to replay")
    return None


def read_archive(file: str) -> Archive:
    """Read an exported cell from a file, or stdin (`-`). Raises InvalidRequest."""
    text = sys.stdin.read() if file == "-" else read_text("export", Path(file))
    try:
        return archives.read(text.splitlines())
    except InvalidRequest as error:
        raise InvalidRequest(f"{file}, {error.detail}; nothing was written") from error


def _write(path: Path, text: str) -> None:
    """Write a file atomically: a full disk must not destroy an earlier backup. Raises InvalidRequest."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise InvalidRequest(f"{path} cannot be written: {error.strerror}") from error
