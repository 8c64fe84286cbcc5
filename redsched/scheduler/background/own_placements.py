"""What the claim calls of this process have placed, kept until it is recorded in the event log.

Otherwise the recorder would read each claim again from the store. Only the scheduler that records keeps placements.
"""

from collections import OrderedDict

from redsched.model.record import record
from redsched.store.codec.fields import AMOUNT
from redsched.store.codec.replies import ClaimCall, ClaimReply, Member

MAX_PLACED = 10_000
"""More than are placed between two recordings. What is dropped is read from the store."""


@record
class _Placed:
    call: ClaimCall
    member: Member
    candidate: int


class OwnPlacements:
    """The latest placements of new claims in one cell, by token."""

    def __init__(self) -> None:
        self._placed: OrderedDict[str, _Placed] = OrderedDict()
        self._is_kept = False

    def keep(self, is_kept: bool) -> None:
        """Keep placements from now on, or drop all: `is_kept` says whether this process records the cell's events."""
        self._is_kept = is_kept
        if not is_kept:
            self._placed.clear()

    def note(self, call: ClaimCall, answer: ClaimReply) -> None:
        """Keep what a call of claim.lua has placed, according to its answer with OK."""
        if not self._is_kept:
            return
        for member, one in zip(call.members, answer.placed, strict=True):
            if one.candidate is not None:
                self._placed[one.token] = _Placed(call, member, one.candidate)
        while len(self._placed) > MAX_PLACED:
            self._placed.popitem(last=False)

    def take(self, token: str) -> dict[str, str] | None:
        """Forget a placement, and return the fields of its claim that events show: its owner, gang and amounts.

        Returns None if it is not known.
        """
        found = self._placed.pop(token, None)
        if found is None:
            return None
        call = found.call
        gang = call.members[0].id if call.is_gang and len(call.members) > 1 else ""
        owner = {"project": call.project, "consumer": call.carried.get("consumer", ""), "gang": gang}
        fields = {name: value for name, value in owner.items() if value}
        for slot, amount in found.member.candidates[found.candidate].amounts.items():
            fields[AMOUNT + slot] = str(amount)
        return fields
