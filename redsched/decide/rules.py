"""The building blocks of filters: rules over rows. The filters themselves are in `filters`."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from redsched.cache.columns import Columns
from redsched.cache.derived import ALL_ROWS as ALL_ROWS, Rows as Rows
from redsched.model import Request

Mask = Any
"""np.bool_ for one row, else a bool array over the rows. Combine with `&`, `|` and `~`, never with `and` or `not`."""


def depends_on_nothing(_columns: Columns) -> Hashable:
    """Return a constant: the dependency of rules and weighers that read nothing but the row."""
    return None


def _never(_columns: Columns) -> bool:
    return False


def _nothing(_columns: Columns, _row: int) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why hosts fail a rule about amounts, as one of several `reasons` under which they are counted.

    `first(columns, rows)` returns the index of the first reason that applies to each row that fails the rule, -1 for
    none; for other rows it means nothing. `detail(columns, row)` has the value, if the detail of the rule lacks it.
    """

    reasons: tuple[str, ...]
    first: Callable[[Columns, Rows], Any]
    detail: Callable[[Columns, int], str] = _nothing

    @classmethod
    def alone(cls, reason: str, applies: Callable[[Columns, Rows], Mask]) -> "Cause":
        """Return a cause with a single reason, which applies to the rows in a mask."""
        return cls((reason,), lambda columns, rows: applies(columns, rows) - 1)


def _no_causes() -> Sequence[Cause]:
    return ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One test that a host must pass.

    `passes(columns, rows)` is pure, and gives the same result for a row alone as among others; `detail(columns, row)`
    describes it for one host, with the numbers. `reason` is the reason under which rejected hosts are counted. `slot`
    is set if the rule tests nothing but an amount of that slot.

    A rule must declare what it reads besides the row itself, as its results are cached: `depends(columns)` is a value
    that changes when all rows must be tested again (the metadata of aggregates, whether a shared pool has room). A rule
    that changes with every claim (the members of a server group) is `dynamic`: its results are not cached, and each
    decision tests it on the rows that passed all others. A dynamic rule is `local` if its result for a row changes only
    with the places on that row, so that while places are tried no other row need be tested again.

    A rule about `room` tests what is left on a host, not the host itself: a host that fails only such rules is still
    among those that a request is spread over. While a rule is `idle`, every host passes it, and it need not be tested
    (no aggregate demands anything); this may change only when `depends` does.

    `causes()` have more exact reasons than `reason`. They are tested in this order on hosts that fail the rule, and
    only to explain that.

    A dynamic rule that is `guarded` may fail on hosts that do not pass the others: explanations do not test it on them.
    """

    reason: str
    passes: Callable[[Columns, Rows], Mask]
    detail: Callable[[Columns, int], str]
    slot: str | None = None
    depends: Callable[[Columns], Hashable] = depends_on_nothing
    dynamic: bool = False
    room: bool = False
    idle: Callable[[Columns], bool] = _never
    local: bool = False
    guarded: bool = False
    causes: Callable[[], Sequence[Cause]] = _no_causes


Filter = Callable[[Request], Iterator[Rule]]
"""Yields the rules for a request; none if the request does not use the filter."""
