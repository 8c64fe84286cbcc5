"""What a filter is made of: rules over rows. The filters themselves are in `filters`."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.model import Request

Rows = int | slice | NDArray[np.intp]
"""Which rows to look at: one, or many. An array of columns indexed with it gives a numpy scalar or an array."""

Mask = Any
"""np.bool_ for one row, else a bool array over the rows. Combine with `&`, `|` and `~`, never with `and` or `not`."""

ALL_ROWS = slice(None)


def depends_on_nothing(_columns: Columns) -> Hashable:
    """Return what a rule or weigher that reads nothing but the row depends on."""
    return None


def _never(_columns: Columns) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Rule:
    """One test that a host must pass.

    `passes(columns, rows)` is pure and gives the same for a row alone as for that row among others; `detail(columns,
    row)` says the same of one host in words, with the numbers. `reason` is what a host is counted under. `slot` is set
    where nothing but an amount of that slot is tested.

    What a rule reads beside the row itself it must own up to, because its results are kept: `depends(columns)` is a
    value that differs once all rows must be looked at again (the metadata of aggregates, whether a shared pool has
    room). A rule that changes with every claim (the members of a server group) is `dynamic`: nothing of it is kept, and
    it is asked at each decision about the rows that passed all others. Of those a `local` one changes for a row only
    with who sits on that row, so that while places are tried out nobody else's row need be asked again.

    A rule about `room` says what is left on a host and not what the host is: one that fails only such rules is still
    among the hosts that a request is spread over. While a rule is `idle` every host passes it, and it need not be asked
    (no aggregate demands anything); that may change only where `depends` does.
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


Filter = Callable[[Request], Iterator[Rule]]
"""The rules that a request brings with it: none when it does not ask for what the filter is about."""
