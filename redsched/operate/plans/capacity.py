"""How many more of a request fit, where, and what runs out."""

from collections import Counter
from dataclasses import replace

from redsched.decide.scoring.demand import taken_by
from redsched.decide.work_limit import TooMuchWork
from redsched.model import Candidate, ReasonCount, Request
from redsched.model.records.plans import CapacityPlan, ClassAmounts
from redsched.operate.plans.cell_copy import CellCopy, free_by_class

MAX_PLACES = 100_000
"""The most places that a plan counts: with so many, there are at least that many."""


def capacity(copy: CellCopy, request: Request) -> CapacityPlan:
    """Return how many more of a request fit, placed one after the other. If the time is up, there are at least these.

    Raises InvalidRequest. The copy is as before.
    """
    before = free_by_class(copy.columns)
    asked = taken_by(request)
    with copy.trial():
        counting = Counting(copy, request)
        counting.count()
        after = free_by_class(copy.columns)
    classes = tuple(ClassAmounts(name, *before.get(name, (0, 0)), after.get(name, (0, 0))[1]) for name in sorted(asked))
    return CapacityPlan(
        counting.times, counting.is_cut, dict(sorted(counting.zones.items())), counting.reasons, classes
    )


class Counting:
    """Fills a copy with places of one request. `times` is how often all of it fits; `is_cut` if more may fit."""

    def __init__(self, copy: CellCopy, request: Request) -> None:
        self._copy = copy
        self._request = replace(request, claim_ids=())
        self.times = 0
        self.is_cut = False
        self.zones = Counter[str]()
        self.reasons: tuple[ReasonCount, ...] = ()

    def count(self) -> None:
        """Fill the copy until nothing more fits, or the time is up."""
        try:
            self._fill_hosts()
            self._fill_in_turn()
        except TooMuchWork:
            self.is_cut = True

    def _fill_hosts(self) -> None:
        """Fill host by host, if the places on one host do not change those on others."""
        columns = self._copy.columns
        for found in self._copy.decider.room(self._request, MAX_PLACES) or ():
            host = columns.name(found.row)
            self._copy.take_many(Candidate(host, found.amounts), found.places)
            self._note(host, found.places)
            self.times += found.places

    def _fill_in_turn(self) -> None:
        """Decide again and again, until nothing more fits."""
        while self.times < MAX_PLACES:
            decision = self._copy.decide(self._request)
            if len(decision.places) < self._request.places:
                self.reasons = decision.reasons
                return
            for place in decision.places:
                self._copy.take(place)
                self._note(place.chosen.host, 1)
            self.times += 1
        self.is_cut = True

    def _note(self, host: str, places: int) -> None:
        row = self._copy.columns.row(host)
        self.zones[self._copy.columns.domain("zone", row) if row is not None else ""] += places
