"""The limit of columns: each slot, trait, label and metric that any host reports is one, over all hosts of a cell."""

from collections.abc import Collection, Container, Sized
from typing import Protocol

from redsched.errors import ClaimState
from redsched.model import HostReport
from redsched.model.limits import MAX_CELL_SLOTS
from redsched.scheduler.cells import Cell


def refuse_too_many_columns(cell: Cell, report: HostReport) -> None:
    """Raise ClaimState if a report would give a cell too many different slots, traits, labels or metrics."""
    columns = cell.updater.columns
    traits = {*report.traits, *(f"{name}/{one}" for name, pool in report.pools.items() for one in pool.traits)}
    _refuse(cell, "slots", columns.capacity, report.slots())
    _refuse(cell, "traits", columns.traits, traits)
    _refuse(cell, "labels", columns.labels, report.labels)
    _refuse(cell, "metrics", columns.metrics, report.metrics)


class _Known(Sized, Container[str], Protocol):
    """Keys that have a column."""


def _refuse(cell: Cell, what: str, known: _Known, reported: Collection[str]) -> None:
    new = [one for one in reported if one not in known]
    if new and len(known) + len(new) > MAX_CELL_SLOTS:
        raise ClaimState(
            f"cell {cell.name} has {len(known)} different {what} of at most {MAX_CELL_SLOTS}, and this report has "
            f"{len(new)} more, such as {sorted(new)[0]!r}: give pools of different hosts the same names"
        )
