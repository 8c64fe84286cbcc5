"""`redsched capacity`: how much there is, and how much of it is claimed and free."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from redsched.cli.fleet import ANYWHERE, Where, with_fleet
from redsched.cli.options import AsJson
from redsched.cli.output import tables
from redsched.cli.output.formats import in_units, natural, short_name
from redsched.model.record import json_of
from redsched.model.records.capacity import Capacity, CapacityBy, CapacityRow, ClassCapacity

HEADS = ("RESOURCE", "TOTAL", "CLAIMED", "EXTERNAL", "KEPT", "FREE", "AWAY", "LARGEST", "AT")
OF_CLAIMS = ("RESOURCE", "TOTAL", "CLAIMED")
OF_TENANT = ("RESOURCE", "TOTAL", "CLAIMED", "FREE", "LARGEST")
NONE = "no hosts: start an agent with `redsched agent`, or report one"


def capacity(
    by: Annotated[
        CapacityBy | None,
        typer.Option("--by", help="Sum by this too.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Show how much there is, how much is claimed and free, and the most that one claim can take."""
    rows = with_fleet(where, lambda s: s.capacity(by), read_only=True)
    if as_json:
        return tables.show_json(json_of(Capacity(by, rows)))
    if by is None and any(row.name for row in rows):
        return tables.show_table(("PROJECT", *OF_TENANT), _of_tenant(rows), NONE)
    group = () if by is None else (by.value.upper(),)
    of_claims = by in (CapacityBy.PROJECT, CapacityBy.CONSUMER)
    heads, none = (OF_CLAIMS, "no claims") if of_claims else (HEADS, NONE)
    return tables.show_table((*group, *heads), _rows(rows, len(heads), bool(group)), none)


def _of_tenant(rows: Sequence[CapacityRow]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of what is free to projects, as tenants get it."""
    for row in sorted(rows, key=lambda one: natural(one.name)):
        for name, one in row.classes.items():
            claimed, free = (_part(name, amount, one.total) for amount in (one.claimed, one.free))
            yield (row.name, _shown(name), _text(name, one.total), claimed, free, _text(name, one.largest))


def _rows(rows: Sequence[CapacityRow], cells: int, grouped: bool) -> Iterator[tuple[object, ...]]:
    for row in sorted(rows, key=lambda one: natural(one.name)):
        for name, one in row.classes.items():
            yield (*([row.name] if grouped else []), _shown(name), *_cells(name, one)[: cells - 1])


def _shown(name: str) -> str:
    """Return the name of a class: on a terminal GPUs are counted in GPUs, for programs in the class's unit."""
    return short_name(name) if tables.is_fitted() else name


def _cells(name: str, one: ClassCapacity) -> tuple[object, ...]:
    parts = (one.claimed, one.external, one.kept, one.free, one.away)
    claimed, external, kept, *free = (_part(name, amount, one.total) for amount in parts)
    total, largest = _text(name, one.total), _text(name, one.largest)
    return (total, claimed, external, kept if one.kept else None, *free, largest, one.largest_at)


def _part(name: str, amount: int, total: int) -> str:
    """Return an amount with its share of the total: `12 25%`."""
    share = f" {round(100 * amount / total)}%" if total and amount else ""
    return f"{_text(name, amount)}{share}"


def _text(name: str, amount: int) -> str:
    return in_units(name, amount) if tables.is_fitted() else str(amount)
