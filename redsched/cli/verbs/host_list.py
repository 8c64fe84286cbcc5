"""`redsched host list`."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from redsched.cli import completion, formats, options, tables
from redsched.cli.fleet import Fleet
from redsched.cli.host_condition import host_text
from redsched.cli.listings import Column, Form, Listing, SortOption, show_page, sorted_page
from redsched.cli.natural import natural
from redsched.cli.options import After, Limit, Many, filter_names, many, takes
from redsched.cli.watching import WatchOption, find_and_show
from redsched.cli.where import ANYWHERE, Where
from redsched.model import HostCondition, ListedStatus
from redsched.scheduler import HostView, Page
from redsched.schema import responses

NONE = "no hosts: start an agent with `redsched agent`, or report one"
NONE_LEFT = "no hosts match these filters: leave them out to see all"


@takes(Form, "form")
def list_hosts(
    form: Form,
    zone: Annotated[Many, many("Only hosts in this zone.")] = [],  # noqa: B006 - typer reads it, nobody writes it
    status: Annotated[list[ListedStatus], many(f"Only hosts with this status: {', '.join(ListedStatus)}.")] = [],  # noqa: B006
    trait: Annotated[Many, many("Only hosts with this trait.")] = [],  # noqa: B006
    aggregate: Annotated[Many, many("Only hosts in this aggregate.", completed=completion.aggregates)] = [],  # noqa: B006
    label: Annotated[Many, many("Only hosts with this label, as KEY=VALUE.")] = [],  # noqa: B006
    fits: Annotated[
        list[str],
        typer.Option("--fits", help="Only hosts with room for this now, as VCPU=2. Repeatable: all of it on one host."),
    ] = [],  # noqa: B006
    sort: SortOption = "",
    watch: WatchOption = False,
    limit: Limit = 100,
    after: After = "",
    where: Where = ANYWHERE,
) -> None:
    """List hosts with their free amounts."""
    wanted: dict[str, Any] = {
        "zone": filter_names("zone", zone),
        "status": status,
        "trait": filter_names("trait", trait),
        "aggregate": filter_names("aggregate", aggregate),
        "label": ["=".join(options.pair("label", one)) for one in label],
        "fits": options.amounts(fits) or None,
    }

    async def find(fleet: Fleet) -> Page[HostView]:
        async def fetch(most: int, cursor: str) -> Page[HostView]:
            return await fleet.hosts.list(**wanted, limit=most, after=cursor)

        return await sorted_page(fetch, ORDERS, sort, limit, after, lambda one: natural(one.name))

    def show_found(page: Page[HostView]) -> None:
        none = NONE_LEFT if after or any(wanted.values()) else NONE
        show_page(LISTING, page, lambda one: responses.HostsAnswer.of(one), form, none)

    find_and_show(where, watch, find, show_found)


def _status(one: HostView) -> object:
    """Return a host in one word, and since when it is down."""
    text = host_text(one)
    if one.condition in (HostCondition.DRAINING, HostCondition.DISABLED):
        return formats.caution(text)
    return text if one.condition is HostCondition.UP else formats.bad(text)


def _free(one: HostView) -> object:
    free = tables.amounts({slot: found.free for slot, found in one.slots.items()})
    return formats.bad(free) if any(found.free < 0 for found in one.slots.values()) else free


LISTING: Listing[HostView] = Listing(
    (
        Column("HOST", lambda one: one.name),
        Column("ZONE", lambda one: one.zone, leave=1),
        Column("STATUS", _status, leave=4),
        Column("CLAIMS", lambda one: one.claims, leave=2),
        Column("REASON", lambda one: one.status_reason, leave=1),
        Column("FREE", _free, leave=3),
        Column("CELL", lambda one: one.cell, only_wide=True),
        Column("AGGREGATES", lambda one: " ".join(sorted(one.aggregates)), only_wide=True),
        Column("TRAITS", lambda one: " ".join(sorted(one.traits)), only_wide=True),
        Column(
            "LABELS", lambda one: " ".join(f"{key}={text}" for key, text in sorted(one.labels.items())), only_wide=True
        ),
    ),
    name=lambda one: one.name,
    empty=NONE,
)
ORDERS: Mapping[str, Callable[[HostView], Any]] = {
    "host": lambda one: natural(one.name),
    "zone": lambda one: natural(one.zone),
    "status": lambda one: list(HostCondition).index(one.condition),
    "claims": lambda one: one.claims,
}
"""What hosts can be sorted by."""
