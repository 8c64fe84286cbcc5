"""Make room for a request: clear the host that the fewest claims have to leave, and again for the next place.

    hosts that would take a place if they were empty --> the claims that have to leave each --> the cheapest is cleared
                                                                                                        |
                               the place is taken in the copy <-- its claims have places elsewhere, or the next cheapest

Claims go where they leave the smallest gaps, and not to hosts that are cheap to clear themselves, unless nothing else
takes them.
"""

from collections.abc import Sequence
from dataclasses import replace

from redsched.decide.reserving import Wait
from redsched.decide.work_limit import check_work
from redsched.model import Claim, Request
from redsched.operate.plans.movers import Mover

CONSIDERED = 512
"""The most hosts of which it is found out which claims have to leave."""
SPARED = 64
"""The most hosts to which claims go last, because they are the cheapest to clear."""


def relates_places(request: Request) -> bool:
    """Return whether where one place of a request is decides on where others may be: taken one by one, none would know.

    With a server group the copy counts them.
    """
    return request.count > 1 and not request.server_group and any(one.hard for one in request.spread)


class RoomMaker:
    """Makes room for places of one request, by moves of a mover."""

    def __init__(self, mover: Mover, request: Request) -> None:
        self._mover = mover
        self._request = replace(request, count=1, mode="all", claim_ids=())
        self._waits: dict[str, Wait | None] = {}
        """What has to happen on each host, as far as it was found out and has not changed since."""
        self._stuck: dict[str, set[str]] = {}
        """The claims that have no place outside their host, by host."""

    def take(self) -> bool:
        """Take one place that fits without moves, and return whether there was one."""
        decision = self._mover.copy.decide(self._request)
        if not decision.places:
            return False
        self._mover.copy.take(decision.places[0])
        self._waits.pop(decision.places[0].chosen.host, None)
        return True

    def make(self, spare: int = SPARED) -> bool:
        """Make room for one place that does not fit, and take it. Returns False, without moves, if that fails.

        `spare` is the number of further places for which room is to be made.
        """
        tried = set[str]()
        while waits := [one for one in self._cheapest() if one.host not in tried]:
            check_work("clearing hosts")
            spared = frozenset(one.host for one in waits[: min(spare, SPARED)])
            if self._clear(waits[0], spared - {waits[0].host}):
                return True
            stuck = self._stuck.setdefault(waits[0].host, set())
            if stuck.isdisjoint(waits[0].leaving):
                tried.add(waits[0].host)
            else:
                self._waits.pop(waits[0].host, None)  # without those that cannot leave, others may have to
        return False

    def _cheapest(self) -> list[Wait]:
        """Return the hosts that can be cleared with the moves that are left, the cheapest first."""
        hosts = self._mover.copy.decider.worth_waiting_for(self._request, CONSIDERED)
        found = (self._wait(host) for host in hosts)
        usable = (one for one in found if one is not None and 0 < len(one.leaving) <= self._mover.left)
        return sorted(usable, key=lambda one: (len(one.leaving), self._size(one.leaving), one.host))

    def _wait(self, host: str) -> Wait | None:
        if host not in self._waits:
            stuck = self._stuck.get(host, ())
            claims = [one for one in self._mover.on(host) if one.claim_id not in stuck]
            decider = self._mover.copy.decider
            self._waits[host] = decider.wait_for(self._request, host, claims, 0) if claims else None
        return self._waits[host]

    def _size(self, claim_ids: Sequence[str]) -> int:
        return sum(sum(self._mover.copy.claims[one].slots.values()) for one in claim_ids)

    def _clear(self, wait: Wait, spared: frozenset[str]) -> bool:
        """Move the claims off a host that have to leave it, and take the place."""
        copy, mark, moves = self._mover.copy, self._mover.copy.mark, len(self._mover.moves)
        claims = [claim for claim in copy.on_host(wait.host) if claim.claim_id in wait.leaving]
        for number, claim in enumerate(claims, 1):
            is_last = number == len(claims)
            gain = f"{wait.host} takes one more" if is_last else f"{len(claims) - number} more to leave {wait.host}"
            if not self._move(claim, gain, spared):
                self._stuck.setdefault(wait.host, set()).add(claim.claim_id)
                self._mover.undo_to(mark, moves)
                return False
        decision = copy.decide(replace(self._request, hosts=frozenset((wait.host,))))
        if not decision.places:
            self._mover.undo_to(mark, moves)
            return False
        copy.take(decision.places[0])
        for one in self._mover.moves[moves:]:
            self._waits.pop(one.target, None)
            self._waits.pop(one.source, None)
        return True

    def _move(self, claim: Claim, gain: str, spared: frozenset[str]) -> bool:
        return bool(self._mover.move(claim, gain, exclude=spared) or (spared and self._mover.move(claim, gain)))
