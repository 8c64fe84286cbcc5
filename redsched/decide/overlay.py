"""Tentative placement: claims written into the columns themselves, and removed before any other task reads them.

Decisions never await, so no other task runs until the columns are restored. Code that reads columns (rules, weighers,
pool assignment) works the same with tentative places as with real ones. Copying a fleet's columns would cost
milliseconds per gang.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Self

from redsched.cache.columns import Columns
from redsched.decide.affinity import THIS_CALL
from redsched.model import LEASED, Amounts, Candidate, Claim, GroupPolicy
from redsched.model.validation import SHARED_POOL, split_slot
from redsched.store.codec.keys import Kind

Counted = Mapping[str, tuple[str, ...]]
NOWHERE_COUNTED: Counted = MappingProxyType({})
_CALL_FIELDS = MappingProxyType({"policy": GroupPolicy.ANTI_AFFINITY})
"""A group must have a policy. This one is never enforced, as no request names the group."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The changes of one place: its amounts, and by group the domains that count it."""

    row: int
    host: str
    amounts: Amounts
    domains: Mapping[str, Mapping[str, str]]
    is_starting: bool = True


class Overlay:
    """A context manager that removes all places taken in it at its end.

        with Overlay(columns) as trial:
            trial.take(row, candidate, counted)

    `counted` are the groups that count a place, each with its topologies. Inside, the places of the call have a group
    of their own (`affinity.THIS_CALL`).
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._noted: dict[int, tuple[_Place, int]] = {}
        self._next = 0

    def __enter__(self) -> Self:
        self._columns.tentative += 1
        self._columns.declared.put(Kind.SERVER_GROUP, THIS_CALL, _CALL_FIELDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in reversed(list(self._noted)):
            self.give_back(number)
        self._columns.declared.remove(Kind.SERVER_GROUP, THIS_CALL)
        self._columns.tentative -= 1

    def take(self, row: int, candidate: Candidate, counted: Counted = NOWHERE_COUNTED) -> int:
        """Put a place on a row, and count it. Returns its number, for `give_back`."""
        domains = {group: self._domains(row, topologies) for group, topologies in counted.items()}
        return self._note(_Place(row, candidate.host, candidate.amounts, domains), 1)

    def end(self, row: int, claim: Claim) -> int:
        """Pretend that an existing claim has ended. Returns its number, for `give_back`.

        The claim is removed from the domains that counted it, even if its host has left them since. Amounts of an
        undeclared shared pool (deleted by force, or lost with the store) are skipped, as no column has them.
        """
        declared = self._columns.declared
        amounts = {slot: amount for slot, amount in claim.slots.items() if self._has_column(slot)}
        domains = {claim.server_group: claim.counted} if claim.server_group in declared.groups else {}
        is_starting = claim.state in LEASED
        return self._note(_Place(row, claim.host, amounts, domains, is_starting), -1)

    def _has_column(self, slot: str) -> bool:
        pool = split_slot(slot)[0]
        return not pool.startswith(SHARED_POOL) or pool.removeprefix(SHARED_POOL) in self._columns.declared.pools

    def give_back(self, number: int) -> None:
        """Undo one `take` or `end`."""
        place, sign = self._noted.pop(number)
        self._count(place, -sign)

    def _domains(self, row: int, topologies: tuple[str, ...]) -> Mapping[str, str]:
        return {"host": ""} | {by: self._columns.domain(by, row) for by in topologies}

    def _note(self, place: _Place, sign: int) -> int:
        self._count(place, sign)
        self._next += 1
        self._noted[self._next] = (place, sign)
        return self._next

    def _count(self, place: _Place, sign: int) -> None:
        columns, row = self._columns, place.row
        for slot, amount in place.amounts.items():
            if slot.startswith(SHARED_POOL):
                pool, resource_class = split_slot(slot)
                columns.declared.take(pool.removeprefix(SHARED_POOL), resource_class, sign * amount)
            else:
                columns.claimed.set(slot, row, columns.claimed[slot].item(row) + sign * amount)
        columns.claims[row] += sign
        columns.starting[row] += sign * place.is_starting
        for group, domains in place.domains.items():
            columns.declared.place(group, place.host, domains, sign)
