"""`redsched export` and `import`: write a cell as JSON lines, and read it back."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from redsched.cli.files import write_whole
from redsched.cli.fleet import with_scheduler
from redsched.cli.options import AsJson, Url
from redsched.cli.output import progress, tables
from redsched.errors import InvalidRequest
from redsched.model.validation import check_name
from redsched.operate.backup import archive as archives
from redsched.operate.backup.archive import Archive
from redsched.yaml_io import read_text

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="File written by `redsched export`; - for stdin.")]


def export(
    output: Annotated[str, typer.Option("--output", metavar="FILE", help="File to write to. Default: stdout.")] = "",
    cell: Annotated[str, typer.Option("--cell", help="Cell to export, if there are several.", show_default=False)] = "",
    url: Url = "",
) -> None:
    """Export a cell as JSON lines: declared objects, hosts, claims and their requests."""
    name = check_name("cell", cell) if cell else ""
    with progress.shown("exporting"):
        archive = with_scheduler(url, lambda s: s.export(name), read_only=True)
    text = "".join(f"{line}\n" for line in archives.archive_lines(archive))
    if output:
        write_whole(Path(output), text.encode())
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
    try:
        archive = read_archive(file)
    except InvalidRequest as error:
        raise InvalidRequest(f"{error.detail}; nothing was written") from error
    with progress.shown("importing"):
        found = with_scheduler(url, lambda s: s.import_(archive, declared))
    if as_json:
        return tables.show_json({"imported": found.counts, "notes": found.notes})
    print(f"cell {archive.head.cell}: " + ", ".join(_counted(number, what) for what, number in found.counts.items()))
    for note in found.notes:
        print(f"note: {note}")
    return None


def _counted(number: int, what: str) -> str:
    """Return the number of things whose plural is a key of the counts: `1 server group`, `2 statuses`."""
    plural = what.replace("_", " ")
    singular = plural.removesuffix("es" if plural.endswith("ses") else "s")
    return f"{number} {singular if number == 1 else plural}"


def read_archive(file: str) -> Archive:
    """Read an exported cell from a file, or stdin (`-`). Raises InvalidRequest."""
    text = sys.stdin.read() if file == "-" else read_text("export", Path(file))
    try:
        return archives.read(text.splitlines())
    except InvalidRequest as error:
        raise InvalidRequest(f"{file}, {error.detail}") from error
