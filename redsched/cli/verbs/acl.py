"""`redsched acl`: print the permissions that a user of the store needs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from redsched.auth.private_file import read_private
from redsched.cli.fleet import settings_for
from redsched.cli.options import Url
from redsched.errors import InvalidRequest
from redsched.model.validation import check_name
from redsched.store.access.roles import StoreRole
from redsched.store.access.rules import PLACEHOLDER, StoreUser, rules_of
from redsched.store.topology.password import MAX_BYTES


def acl(
    role: Annotated[StoreRole, typer.Option("--role", help="What the user does.")],
    host: Annotated[
        list[str],
        typer.Option("--host", help="Only for the agent of this host. Repeatable.", show_default="any host"),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    cell: Annotated[
        list[str],
        typer.Option("--cell", help="Only for this cell. Repeatable.", show_default="REDSCHED_CELLS"),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    user: Annotated[str, typer.Option("--user", help="The user's name.", show_default="redsched-ROLE")] = "",
    password_file: Annotated[
        str,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="Private file with the password, of which only the SHA-256 is printed; - for stdin.",
            show_default="a placeholder",
        ),
    ] = "",
    is_file: Annotated[bool, typer.Option("--aclfile", help="Print the line of an ACL file.")] = False,
    url: Url = "",
) -> None:
    """Print the permissions of a user of the store, as a command or for an ACL file.

    The store's URL and the settings decide what is added for a cluster, a database and durability. Nothing connects.
    """
    settings = settings_for(url)
    cells = tuple(check_name("cell", one) for one in cell) or settings.cells
    hosts = tuple(check_name("host", one) for one in host)
    wanted = StoreUser(check_name("user", user or f"redsched-{role}"), role, cells, hosts)
    password = _password(password_file) if password_file else ""
    print(" ".join(("user" if is_file else "ACL SETUSER", wanted.name, *rules_of(wanted, settings, password))))
    if not password:
        print(f"redsched: replace {PLACEHOLDER}, or pass --password-file", file=sys.stderr)


def _password(file: str) -> str:
    """Return the first line of a file, without its end."""
    text = sys.stdin.read() if file == "-" else read_private("password file", Path(file), MAX_BYTES)
    password = text.partition("\n")[0].rstrip("\r")
    if not password:
        raise InvalidRequest(f"the password file {file!r} begins with an empty line: write the password into it")
    return password
