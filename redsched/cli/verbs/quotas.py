"""`redsched quota list`, `show`, `set`, `delete`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import typer

from redsched.cli import completion, options
from redsched.cli.fleet import ANYWHERE, Where, with_fleet
from redsched.cli.options import After, AsJson, Limit, named, takes
from redsched.cli.output import formats, tables
from redsched.cli.output.formats import natural
from redsched.cli.output.listings import Column, Form, Listing, in_order
from redsched.cli.watching import WatchOption, find_and_show
from redsched.model import Quota
from redsched.model.record import json_of
from redsched.model.records import pages
from redsched.model.records.declared import QuotaView
from redsched.model.records.pages import Page

Project = Annotated[str, named("PROJECT", "The project's name.", "project", completion.quotas)]


@takes(Form, "form")
def list_quotas(
    form: Form, watch: WatchOption = False, limit: Limit = 100, after: After = "", where: Where = ANYWHERE
) -> None:
    """List the quotas of projects with their usage."""

    def show_found(page: Page[QuotaView]) -> None:
        shown = in_order(page, lambda one: natural(one.project))
        LISTING.show(_rows(shown.items), lambda: pages.QUOTAS.values(shown), form, shown.next)

    find_and_show(where, watch, lambda s: s.quotas.list(limit=limit, after=after), show_found)


def show(project: Project, as_json: AsJson = False, where: Where = ANYWHERE) -> None:
    """Show the quota of a project with its usage."""
    found = with_fleet(where, lambda s: s.quotas.get(project), read_only=True)
    return tables.show_json(json_of(found)) if as_json else LISTING.show_rows(_rows([found]))


def set_quota(
    project: Project,
    limit: Annotated[
        list[str], typer.Argument(metavar="CLASS=LIMIT...", help="Limits by class, such as VCPU=100, or claims=50.")
    ],
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Limit the total usage of a project's claims. Classes that are not listed have no limit."""
    asked = Quota(project, options.amounts(limit))
    found, new = with_fleet(where, lambda s: s.quotas.put(asked), on_demand=True)
    if as_json:
        return tables.show_json(json_of(found))
    return print(f"quota of project {project} is {'declared' if new else 'changed'}")


def delete(project: Project, where: Where = ANYWHERE) -> None:
    """Delete the quota of a project, which then has no limits."""
    with_fleet(where, lambda s: s.quotas.delete(project), on_demand=True)
    print(f"quota of project {project} is deleted")


@dataclass(frozen=True, slots=True)
class _Row:
    """A project's limit of one class (None for no limit), and its usage."""

    project: str
    resource: str
    limit: int | None
    used: int


def _rows(found: Iterable[QuotaView]) -> list[_Row]:
    return [
        _Row(one.project, name, one.limits.get(name), one.used.get(name, 0))
        for one in found
        for name in sorted({*one.limits, *(name for name, amount in one.used.items() if amount)})
    ]


def _used(one: _Row) -> object:
    is_over = one.limit is not None and one.used > one.limit
    return formats.bad(str(one.used)) if is_over else one.used


LISTING: Listing[_Row] = Listing(
    (
        Column("PROJECT", lambda one: one.project),
        Column("RESOURCE", lambda one: one.resource),
        Column("LIMIT", lambda one: one.limit, leave=1),
        Column("USED", _used, leave=2),
    ),
    name=lambda one: one.project,
    empty="no quotas",
)
