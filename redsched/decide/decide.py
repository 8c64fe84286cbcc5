"""Deciding where a request goes in one cell: filter, weigh, pick, over columns in memory. No I/O, nothing written.

        request --> rules (filters) --> scores (weighers) --> order --> pick --> Decision
                    \\____________ cached Shape ___________/

A decision is a proposal: the claim script has the last word, and tries the candidates in the order given here.
"""

from collections import OrderedDict
from random import Random

from redsched.cache.columns import Columns
from redsched.decide.answers import Decision, Explanation
from redsched.decide.explain import explain
from redsched.decide.filters import rules_of
from redsched.decide.front import Entry
from redsched.decide.members import place_members
from redsched.decide.pick import pick
from redsched.decide.shape import Shape
from redsched.decide.weighers import multipliers
from redsched.model import Request
from redsched.settings import Settings


class Decider:
    """Decides over the columns of one cell, and remembers the latest `remembered` shapes of requests."""

    def __init__(self, columns: Columns, settings: Settings, remembered: int = 64) -> None:
        self._columns = columns
        self._settings = settings
        self._remembered = remembered
        self._shapes: OrderedDict[str, Shape] = OrderedDict()

    def decide(self, request: Request, rng: Random) -> Decision:
        """Propose hosts for every place of a request, or refuse it with reasons. `rng` spreads concurrent schedulers.

        Raises InvalidRequest for a policy or weigher that does not exist.
        """
        shape = self._shape(request)
        best = shape.best(self._needed(request))
        members = self._members(request, shape, best, rng)
        if len(members) < request.count:
            return Decision((), (), 0.0, len(self._columns), 0, shape.refusal())
        alternates = _alternates(request, members, best)
        return Decision(tuple(members), alternates, -best[0][0], len(self._columns), shape.fits)

    def explain(self, request: Request, host: str | None = None) -> Explanation:
        """Explain the decision on a request, and every check of a named host (none where the host is not known).

        Raises InvalidRequest for a policy or weigher that does not exist.
        """
        shape = self._shape(request)
        members = self._members(request, shape, shape.best(self._needed(request)), Random(0))
        return explain(shape, request, len(members), host)

    def _shape(self, request: Request) -> Shape:
        key = request.shape()
        shape = self._shapes.get(key)
        if shape is None:
            weighing = multipliers(request, self._settings.policy, self._settings.weights)
            shape = self._shapes[key] = Shape(self._columns, request, rules_of(request), weighing)
            if len(self._shapes) > self._remembered:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(key)
            shape.refresh()
        return shape

    def _needed(self, request: Request) -> int:
        # Each place may take one host out of the order, and as many may be left out of the alternates.
        return 2 * request.count + request.alternates + self._settings.candidates + self._settings.pick_from

    def _members(self, request: Request, shape: Shape, best: list[Entry], rng: Random) -> list[tuple[str, ...]]:
        candidates, pick_from = self._settings.candidates, self._settings.pick_from
        if request.count > 1:
            return place_members(shape, best, request.count, candidates, pick_from, rng)
        chosen = pick(best[: max(candidates, pick_from)], pick_from, rng)[:candidates]
        return [tuple(name for _, name, _ in chosen)] if chosen else []


def _alternates(request: Request, members: list[tuple[str, ...]], best: list[Entry]) -> tuple[str, ...]:
    if not request.alternates:
        return ()
    first = {member[0] for member in members}
    further = [name for _, name, _ in best if name not in first]
    return tuple(further[: request.alternates + request.count])
