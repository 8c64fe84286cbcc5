"""`redsched quota list`, `show`, `set`, `delete`, and `redsched usage`."""

from collections.abc import Iterable
from typing import Annotated

import typer

from redsched.cli import completion, options, tables
from redsched.cli.options import After, AsJson, Limit, Url, about, named
from redsched.cli.scheduler import with_scheduler
from redsched.model import Quota
from redsched.scheduler import QuotaView, UsageRow, usage_by
from redsched.schema import responses
from redsched.schema.requests.queries import UsageQuery

HEADS = ("PROJECT", "RESOURCE", "LIMIT", "USED")

Project = Annotated[str, named("PROJECT", "The project's name.", "project", completion.quotas)]


def list_quotas(limit: Limit = 100, after: After = "", as_json: AsJson = False, url: Url = "") -> None:
    """List the quotas of projects with their usage."""
    page = with_scheduler(url, lambda s: s.quotas.list(limit=limit, after=after), read_only=True)
    if as_json:
        return tables.show_json(responses.QuotasAnswer.of(page))
    _show(page.items)
    tables.show_more(page.next)
    return None


def show(project: Project, as_json: AsJson = False, url: Url = "") -> None:
    """Show the quota of a project with its usage."""
    found = with_scheduler(url, lambda s: s.quotas.get(project), read_only=True)
    return tables.show_json(responses.QuotaAnswer.of(found)) if as_json else _show([found])


def set_quota(
    project: Project,
    limit: Annotated[
        list[str], typer.Argument(metavar="CLASS=LIMIT...", help="Limits by class, such as VCPU=100, or claims=50.")
    ],
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Limit the total usage of a project's claims. Classes that are not listed have no limit."""
    asked = Quota(project, options.amounts(limit))
    found, new = with_scheduler(url, lambda s: s.quotas.put(asked), on_demand=True)
    if as_json:
        return tables.show_json(responses.QuotaAnswer.of(found))
    return print(f"quota of project {project} is {'declared' if new else 'changed'}")


def delete(project: Project, url: Url = "") -> None:
    """Delete the quota of a project, which then has no limits."""
    with_scheduler(url, lambda s: s.quotas.delete(project), on_demand=True)
    print(f"quota of project {project} is deleted")


def usage(
    by: Annotated[
        list[str],
        typer.Option(help=about(UsageQuery, "by"), show_default="class"),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Show the total usage of all claims."""
    groups = usage_by(",".join(by) or "class")
    rows = with_scheduler(url, lambda s: s.usage(groups), read_only=True)
    if as_json:
        return tables.show_json(responses.UsageAnswer.of(rows))
    return _show_usage([one for one in groups if one != "class"], rows)


def _show(found: Iterable[QuotaView]) -> None:
    rows = (
        (one.project, name, one.limits.get(name), one.used.get(name, 0))
        for one in found
        for name in sorted({*one.limits, *(name for name, amount in one.used.items() if amount)})
    )
    tables.show_table(HEADS, rows, "no quotas")


def _show_usage(groups: list[str], found: Iterable[UsageRow]) -> None:
    heads = (*(one.upper() for one in groups), "RESOURCE", "USED")
    rows = ((*one.of.values(), name, used) for one in found for name, used in sorted(one.used.items()))
    tables.show_table(heads, rows, "no claims")
