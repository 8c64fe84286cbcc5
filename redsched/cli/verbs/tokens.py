"""`redsched token new`, `list`, `revoke`: the access tokens of the token file. None of them uses the store."""

import sys
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from redsched.auth.access_token import check_id, digest_of, new_token
from redsched.auth.caller import Caller
from redsched.auth.replace_file import change_private
from redsched.auth.role_fields import FIELDS_OF_ROLE, NEEDED_FIELD
from redsched.auth.token_file import MAX_BYTES, expiry, read_token_file
from redsched.auth.token_text import keeps_comments, with_entry, without_entry
from redsched.cli.fleet import settings_for
from redsched.cli.options import takes
from redsched.cli.output import formats
from redsched.cli.output.formats import natural
from redsched.cli.output.listings import Column, Form, Listing
from redsched.errors import InvalidRequest, NotFound
from redsched.model.role import Role
from redsched.model.units import parse_seconds

WHAT = "token file"
OPTIONS: Mapping[str, str] = {
    "projects": "--project",
    "hosts": "--host",
    "cell": "--cell",
    "zones": "--zone",
    "labels": "--label",
    "traits": "--trait",
    "project_wide": "--project-wide",
    "claim_prefix": "--claim-prefix",
    "sees_hosts": "--sees-hosts",
}
"""The options by the fields of roles in the token file."""
EXAMPLES: Mapping[Role, str] = {Role.TENANT: "web", Role.AGENT: "gpu-1"}
MAX_EXPIRES_S = 100 * 366 * 86_400


def _several(option: str, help: str) -> Any:  # noqa: A002 - typer's own word
    return typer.Option(option, help=f"{help} Repeatable.", show_default=False)


Id = Annotated[
    str, typer.Argument(metavar="ID", help="The token's id, which is recorded with all that its holder does.")
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="The token file. Default: REDSCHED_AUTH.", show_default=False),
]
Projects = Annotated[
    list[str], _several("--project", "Project of a tenant, or of an agent's local claims; '' for the empty project.")
]
Hosts = Annotated[list[str], _several("--host", "Host of an agent.")]
Cell = Annotated[str, typer.Option("--cell", help="Cell of an agent's hosts. Default: any.", show_default=False)]
Zones = Annotated[list[str], _several("--zone", "Zone that an agent's hosts may report. Default: any.")]
Labels = Annotated[list[str], _several("--label", "Name of a label that an agent's hosts may report. Default: any.")]
Traits = Annotated[list[str], _several("--trait", "Trait that an agent's hosts may report. Default: any.")]
ClaimPrefix = Annotated[
    str,
    typer.Option(
        "--claim-prefix", help="What each claim id that a tenant chooses begins with. Default: any.", show_default=False
    ),
]
Owner = Annotated[
    str,
    typer.Option(
        "--owner", help="Who owns the claims of a tenant or an operator. Default: the token's id.", show_default=False
    ),
]
ProjectWide = Annotated[
    bool, typer.Option("--project-wide", help="A tenant may change claims that others of its projects own.")
]
SeesHosts = Annotated[
    bool, typer.Option("--sees-hosts", help="Name other hosts in a tenant's refusals and explanations.")
]
Expires = Annotated[
    str,
    typer.Option(
        "--expires",
        metavar="TIME",
        help="When it expires: 90d from now, or at 2027-01-31T00:00:00Z. Default: never.",
        show_default=False,
    ),
]


def new(
    token_id: Id,
    role: Annotated[Role, typer.Option("--role", help="What its holder may do.", show_default=False)],
    projects: Projects = [],  # noqa: B006 - typer reads it, nobody writes it
    hosts: Hosts = [],  # noqa: B006
    cell: Cell = "",
    zones: Zones = [],  # noqa: B006
    labels: Labels = [],  # noqa: B006
    traits: Traits = [],  # noqa: B006
    owner: Owner = "",
    project_wide: ProjectWide = False,
    claim_prefix: ClaimPrefix = "",
    sees_hosts: SeesHosts = False,
    expires: Expires = "",
    file: File = None,
) -> None:
    """Create an access token, print it once, and write its digest into the token file.

    The token is alone on stdout: write it into a private file (umask 077). On a command line, such as that of curl,
    other users of the machine can see it.
    """
    path, token = _path(file), new_token(check_id(token_id))
    given: dict[str, Any] = {"projects": projects, "hosts": hosts, "zones": zones, "labels": labels, "traits": traits}
    given |= {"cell": cell, "owner": owner, "claim_prefix": claim_prefix, "sees_hosts": sees_hosts}
    given |= {"expires": _expires(expires)}
    _check_role(token_id, role, [name for name, value in {**given, "project_wide": project_wide}.items() if value])
    entry: dict[str, Any] = {"id": token_id, "sha256": digest_of(token).hex(), "role": str(role)}
    entry |= {name: value for name, value in given.items() if value}
    if project_wide or role is Role.TENANT:
        entry["project_wide"] = project_wide  # a tenant's token without it is from before claims had owners
    _change(path, lambda text: with_entry(text, entry))
    print(token, flush=True)
    _explain(
        f"{token_id} is {_article(role)}; its digest is in {path}, and processes that use the file accept it in seconds"
    )
    _explain("the token is shown this once: keep it in a file with mode 0600, and off command lines")


@takes(Form, "form")
def list_tokens(form: Form, file: File = None) -> None:
    """List the access tokens of the token file, without their digests."""
    callers = sorted(
        (one.caller for one in read_token_file(_path(file)).tokens.values()), key=lambda one: natural(one.id)
    )
    LISTING.show(callers, lambda: {"tokens": [_as_json(one) for one in callers]}, form)


def revoke(token_id: Id, file: File = None) -> None:
    """Remove an access token from the token file. Processes that use the file refuse it within seconds."""
    path = _path(file)

    def edit(text: str) -> str:
        left = without_entry(text, token_id)
        if left is None:
            raise NotFound(f"no token {token_id[:80]!r} in {path}: `redsched token list` shows what there is")
        return left

    read_token_file(path)  # a file that does not exist is not created
    _change(path, edit)
    print(f"{token_id} is revoked")


def _check_role(token_id: str, role: Role, given: Collection[str]) -> None:
    """Raise InvalidRequest for an option that is not for the role, or that it needs."""
    allowed, needed = FIELDS_OF_ROLE[role], NEEDED_FIELD.get(role)
    if foreign := [option for name, option in OPTIONS.items() if name in given and name not in allowed]:
        raise InvalidRequest(f"{foreign[0]} is not for the role {role}: leave it out, or choose another role")
    if needed and needed not in given:
        option = OPTIONS[needed]
        example = f"redsched token new {token_id} --role {role} {option} {EXAMPLES[role]}"
        raise InvalidRequest(f"{option} is missing: the role {role} needs at least one, as in `{example}`")


def _path(file: Path | None) -> Path:
    settings = settings_for()
    if file is None and not settings.auth:
        raise InvalidRequest("no token file is named: set REDSCHED_AUTH, or pass --file")
    return file or Path(settings.auth)


def _change(path: Path, edit: Callable[[str], str]) -> None:
    """Change the token file. An error names it; lost comments are reported."""
    lost: list[bool] = []

    def edited(text: str) -> str:
        try:
            changed = edit(text)
        except InvalidRequest as error:
            raise InvalidRequest(f"{WHAT} {path}: {error}") from error
        lost[:] = [not keeps_comments(text, changed)]
        return changed

    change_private(WHAT, path, MAX_BYTES, edited)
    if any(lost):
        _explain(f"the comments of {path} are lost: it is not written as `redsched token` writes it")


def _expires(text: str) -> str:
    """Return the time when a token expires, as the file has it; '' for never. Raises InvalidRequest."""
    if not text:
        return ""
    seconds = expiry(text) if "-" in text else time.time() + parse_seconds("--expires", text)
    if not time.time() < seconds < time.time() + MAX_EXPIRES_S:
        raise InvalidRequest(f"--expires {text[:80]!r} is not within the next 100 years: give a later time, or none")
    return _time(seconds)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%SZ}"


def _has_expired(caller: Caller) -> bool:
    return caller.expires_at_s is not None and caller.expires_at_s <= time.time()


def _scope(caller: Caller) -> str:
    return " ".join(one or repr(one) for one in sorted(caller.hosts or caller.projects))


def _changes(caller: Caller) -> str:
    """Return whose claims a tenant may change; '' for other roles."""
    if caller.role is not Role.TENANT:
        return ""
    return "its own" if caller.own_only else "all of its projects"


def _expires_at(caller: Caller) -> object:
    """Return when a token expires; '' for never."""
    seconds = caller.expires_at_s
    return "" if seconds is None else formats.Dated(_time(seconds), int(seconds * 1000))


LISTING: Listing[Caller] = Listing(
    (
        Column("TOKEN", lambda one: one.id),
        Column("ROLE", lambda one: one.role, leave=3),
        Column("FOR", _scope, leave=1),
        Column("EXPIRES", _expires_at, leave=2),
        Column("EXPIRED", lambda one: formats.bad("yes") if _has_expired(one) else False, leave=4),
        Column("OWNER", lambda one: one.owner, only_wide=True),
        Column("CHANGES", _changes, only_wide=True),
    ),
    name=lambda one: one.id,
    empty="no tokens",
)


def _as_json(caller: Caller) -> Mapping[str, Any]:
    named = {name: sorted(getattr(caller, name)) for name in ("projects", "hosts", "zones", "labels", "traits")}
    limits = caller.limits
    return {
        "id": caller.id,
        "role": caller.role,
        **named,
        "cell": caller.cell,
        "owner": caller.owner,
        "project_wide": caller.project_wide if caller.role is Role.TENANT else None,
        "claim_prefix": caller.claim_prefix,
        "sees_hosts": caller.sees_hosts,
        "limits": {"requests": limits.requests, "waiting": limits.waiting, "streams": limits.streams},
        "expires": _time(caller.expires_at_s) or None,
        "expired": _has_expired(caller),
    }


def _article(role: Role) -> str:
    return f"an {role}" if role[0] in "ao" else f"a {role}"


def _explain(line: str) -> None:
    print(line, file=sys.stderr)
