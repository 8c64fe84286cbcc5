"""`redsched host list`."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from redsched.cli import completion, options
from redsched.cli.fleet import ANYWHERE, Fleet, Where
from redsched.cli.options import After, Limit, Many, filter_names, many, takes
from redsched.cli.output import formats, tables
from redsched.cli.output.formats import Key, host_text, in_units, natural, short_name
from redsched.cli.output.listings import Column, Form, Listing, Output, SortOption, show_page, sorted_page
from redsched.cli.watching import WatchOption, find_and_show
from redsched.model import HostCondition, ListedStatus
from redsched.model.records import pages
from redsched.model.records.hosts import HostView
from redsched.model.records.pages import Page
from redsched.model.validation import split_slot

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
        wide = form.chosen is Output.WIDE
        show_page(listing_of(page.items, wide), page, pages.HOSTS.values, form, none)

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


def listing_of(hosts: Iterable[HostView], wide: bool) -> Listing[HostView]:
    """Return how hosts are listed: where a table is fitted to the terminal, each class is a column: free/total."""
    if not tables.is_fitted(wide):
        return LISTING
    names = {split_slot(slot)[1] for one in hosts for slot in one.slots}
    of_classes = [Column(short_name(name), partial(_part, name), leave=FREE) for name in sorted(names, key=_rank)]
    first, last = LISTING.columns[:AT_FREE], LISTING.columns[AT_FREE + 1 :]
    return replace(LISTING, columns=(*first, *of_classes, *last))


def _rank(name: str) -> tuple[int, Key]:
    """Return the sort key of a class: what jobs ask for first, and what is hardly ever scarce last."""
    return FIRST.index(name) if name in FIRST else len(FIRST) + (name in LAST), natural(name)


def _part(name: str, one: HostView) -> object:
    """Return what is free of a class of a host, and how much there is: `3/4`; of thousandths in whole units."""
    found = [slot for full, slot in one.slots.items() if split_slot(full)[1] == name]
    if not found:
        return None
    free, total = sum(slot.free for slot in found), sum(slot.capacity for slot in found)
    text = f"{in_units(name, free)}/{in_units(name, total)}"
    return formats.bad(text) if any(slot.free < 0 for slot in found) else text


def _kept(one: HostView) -> object:
    """Return what of each class is kept for a request that waits: others do not get it, though it may be free."""
    kept = Counter[str]()
    for slot, amount in one.kept.items():
        kept[split_slot(slot)[1]] += amount
    text = " ".join(f"{short_name(name)}={in_units(name, amount)}" for name, amount in sorted(kept.items()))
    return formats.caution(text) if text else ""


FIRST, LAST = ("CUSTOM_GPU_MILLI", "VCPU", "PCPU", "MEMORY_MB"), ("DISK_GB",)
FREE = 3
"""When a column about free amounts is left out, among those of LISTING."""
LISTING: Listing[HostView] = Listing(
    (
        Column("HOST", lambda one: one.name),
        Column("ZONE", lambda one: one.zone, leave=1),
        Column("STATUS", _status, leave=4),
        Column("CLAIMS", lambda one: one.claims, leave=2),
        Column("REASON", lambda one: one.status_reason, leave=1, only_fitted=True),
        Column("FREE", _free, leave=FREE),
        Column("KEPT", _kept, leave=2, only_fitted=True),
        Column("KEPT", _kept, only_wide=True),
        Column("REASON", lambda one: one.status_reason, only_wide=True),
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
AT_FREE = next(at for at, column in enumerate(LISTING.columns) if column.head == "FREE")
ORDERS: Mapping[str, Callable[[HostView], Any]] = {
    "host": lambda one: natural(one.name),
    "zone": lambda one: natural(one.zone),
    "status": lambda one: list(HostCondition).index(one.condition),
    "claims": lambda one: one.claims,
}
"""What hosts can be sorted by."""
