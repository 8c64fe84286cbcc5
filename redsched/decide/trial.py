"""Trying places out: claims put into the columns themselves and taken out again, before anyone else can look.

Deciding never waits, so nothing sees the columns between the first place and the undoing; and whatever reads columns
(rules, weighers, the assignment of pools) works on a trial as it does on the truth. Copying a fleet would cost
milliseconds for each gang.
"""

from types import TracebackType
from typing import Self

from redsched.cache.columns import Columns
from redsched.model import Candidate
from redsched.names import SHARED_POOL, split_slot


class Trial:
    """A context: all places taken in it are given back at its end.

    with Trial(columns) as trial:
        trial.take(row, candidate, groups)
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._taken: dict[int, tuple[int, Candidate, tuple[str, ...], int]] = {}
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in reversed(list(self._taken)):
            self.give_back(number)

    def take(self, row: int, candidate: Candidate, groups: tuple[str, ...] = ()) -> int:
        """Put one place on a row, and count it in `groups`. Returns its number, for `give_back`."""
        return self._note(row, candidate, groups, 1)

    def end(self, row: int, candidate: Candidate, groups: tuple[str, ...] = ()) -> int:
        """Do as if a claim that there is had ended. Returns its number, for `give_back`."""
        return self._note(row, candidate, groups, -1)

    def give_back(self, number: int) -> None:
        """Undo one of them."""
        row, candidate, groups, sign = self._taken.pop(number)
        self._count(row, candidate, groups, -sign)

    def _note(self, row: int, candidate: Candidate, groups: tuple[str, ...], sign: int) -> int:
        self._count(row, candidate, groups, sign)
        self._next += 1
        self._taken[self._next] = (row, candidate, groups, sign)
        return self._next

    def _count(self, row: int, candidate: Candidate, groups: tuple[str, ...], sign: int) -> None:
        columns = self._columns
        for slot, amount in candidate.amounts.items():
            if slot.startswith(SHARED_POOL):
                pool, resource_class = split_slot(slot)
                columns.declared.take(pool.removeprefix(SHARED_POOL), resource_class, sign * amount)
            else:
                columns.claimed.set(slot, row, columns.claimed[slot].item(row) + sign * amount)
        columns.claims[row] += sign
        columns.starting[row] += sign
        for group in groups:
            topologies = columns.declared.groups[group].group.topologies()
            columns.declared.place(group, candidate.host, {by: columns.domain(by, row) for by in topologies}, sign)
