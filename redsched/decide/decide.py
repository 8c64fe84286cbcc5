"""Deciding where a request goes in one cell: filter, weigh, pick, over columns in memory. No I/O, nothing written.

        request --> rules (filters) --> scores (weighers) --> order --> pools --> pick --> Decision
                    \\____________ cached Shape ___________/

A decision is a proposal: the claim script has the last word, and tries the candidates in the order given here.
"""

from collections import OrderedDict
from random import Random

from redsched.cache.columns import Columns
from redsched.decide.answers import Decision, Explanation, Place
from redsched.decide.company import claim_rules
from redsched.decide.explain.changes import failing
from redsched.decide.explain.explain import explain
from redsched.decide.filters.demands import keeps_projects
from redsched.decide.filters.limits import host_limits
from redsched.decide.front import Entry
from redsched.decide.membership import per_revision
from redsched.decide.pick import pick
from redsched.decide.placing import Kind, listed, place
from redsched.decide.shape import Shape
from redsched.decide.tools import Tools, tools
from redsched.decide.trial import Trial
from redsched.decide.weighers import multipliers
from redsched.model import Amounts, Candidate, Claim, ClaimRule, HostLimit, Request
from redsched.settings import Settings


class Decider:
    """Decides over the columns of one cell, and remembers the latest `remembered` shapes of requests."""

    def __init__(self, columns: Columns, settings: Settings, known: Tools | None = None, remembered: int = 64) -> None:
        self._columns = columns
        self._settings = settings
        self._tools = known or tools(settings)
        self._remembered = remembered
        self._shapes: OrderedDict[tuple[str, str], Shape] = OrderedDict()
        # Mostly no filter looks at the project, and requests of all projects share a shape.
        self._by_project = per_revision(lambda declared: self._tools.reads_projects or keeps_projects(declared))

    def decide(self, request: Request, rng: Random) -> Decision:
        """Propose hosts for every place of a request, or refuse it with reasons. `rng` spreads concurrent schedulers.

        Raises InvalidRequest for a policy or weigher that does not exist.
        """
        shape = self._shape(request)
        if request.count > 1:
            return self._decide_many(request, shape, rng)
        candidates, pick_from = self._settings.candidates, self._settings.pick_from
        looked_at = max(candidates, pick_from)
        found = self._verified(shape, looked_at + request.alternates + 1)
        if not found:
            return self._refused(shape)
        # What is picked from must not depend on how many alternates are wanted.
        ordered = pick(found[:looked_at], pick_from, rng)
        options = [[Candidate(entry[1], amounts) for amounts in ways] for entry, ways in ordered]
        places = (Place(listed(options, candidates), group=request.server_group),)
        return self._decision(request, shape, places, [entry for entry, _ in found])

    def explain(self, request: Request, host: str | None = None) -> Explanation:
        """Explain the decision on a request, and every check of a named host (none where the host is not known).

        Raises InvalidRequest for a policy or weigher that does not exist.
        """
        shape = self._shape(request)
        return explain(shape, request, len(self._places(request, shape, Random(0))), host)

    def takes_after(self, request: Request, host: str, claim: Claim) -> bool:
        """Whether a host would take one place of a request if a claim on it ended."""
        row = self._columns.row(host)
        if row is None:
            return False
        shape = self._shape(request)
        known = {claim.group: tuple(claim.counted)} if claim.group in self._columns.declared.groups else {}
        with Trial(self._columns) as trial:
            trial.end(row, Candidate(host, claim.amounts), known)
            return failing(shape, request, row) is None

    def limit(self, host: str) -> HostLimit | None:
        """How many claims a host may have; None where that is open, or the host is not known."""
        row = self._columns.row(host)
        found = None if row is None else host_limits(self._columns, row, self._settings)
        return None if found == HostLimit() else found

    def _decide_many(self, request: Request, shape: Shape, rng: Random) -> Decision:
        places = self._places(request, shape, rng)
        if len(places) < request.count:
            return self._refused(shape)
        further = self._verified(shape, request.alternates + 2 * request.count) if request.alternates else []
        return self._decision(request, shape, tuple(places), [entry for entry, _ in further] or shape.best(1))

    def _places(self, request: Request, shape: Shape, rng: Random) -> list[Place]:
        kinds = [Kind(shape, request.count)]
        return place(self._columns, kinds, self._settings.candidates, self._settings.pick_from, rng)

    def _decision(self, request: Request, shape: Shape, places: tuple[Place, ...], best: list[Entry]) -> Decision:
        rules = self._rules(request, shape, len(places))
        alternates = _alternates(request, places, best)
        return Decision(places, alternates, -best[0][0], len(self._columns), shape.fits, (), rules)

    def _refused(self, shape: Shape) -> Decision:
        return Decision((), (), 0.0, len(self._columns), 0, shape.refusal())

    def _rules(self, request: Request, shape: Shape, places: int) -> tuple[ClaimRule, ...]:
        if not request.server_group and not request.spread:
            return ()
        return tuple(claim_rules(request, self._columns, lambda _by: shape.eligible, tuple(range(places))))

    def _verified(self, shape: Shape, count: int) -> list[tuple[Entry, list[Amounts]]]:
        """The `count` best rows whose pools can give the request, with the ways to; fewer only where no more can."""
        found: list[tuple[Entry, list[Amounts]]] = []
        looked_at, looking_at = 0, count
        while True:
            best = shape.best(looking_at)
            for entry in best[looked_at:]:
                ways = shape.assigned(entry[2])
                if ways:
                    found.append((entry, ways))
                    if len(found) == count:
                        return found
            if len(best) < looking_at:
                return found
            looked_at, looking_at = looking_at, 4 * looking_at

    def _shape(self, request: Request) -> Shape:
        key = (request.shape(), request.project if self._by_project(self._columns) else "")
        shape = self._shapes.get(key)
        if shape is None:
            weighing = multipliers(request, self._tools)
            shape = self._shapes[key] = Shape(self._columns, request, weighing, self._tools.filters)
            if len(self._shapes) > self._remembered:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(key)
            shape.refresh()
        return shape


def _alternates(request: Request, places: tuple[Place, ...], best: list[Entry]) -> tuple[str, ...]:
    if not request.alternates:
        return ()
    first = {one.chosen.host for one in places}
    further = [name for _, name, _ in best if name not in first]
    return tuple(further[: request.alternates + len(places)])
