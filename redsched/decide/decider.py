"""Decides where a request goes in one cell: filter, weigh, pick, over columns in memory. No I/O, no writes.

    request --> rules (filters) --> scores (weighers) --> order --> pools --> pick --> Decision
                \\_______ cached RequestProfile _______/

A decision is a proposal: the claim script tries its candidates in the given order, and makes the final decision.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeVar

import numpy as np

from redsched.allowance import Allowance
from redsched.cache.columns import Columns
from redsched.decide.aggregates import per_revision
from redsched.decide.explain.changes import Effort, takes_now
from redsched.decide.explain.explain import explain_steps
from redsched.decide.explain.in_the_way import with_claims
from redsched.decide.explain.places import places_miss, with_rule
from redsched.decide.filters import COUNT, rules_of
from redsched.decide.filters.demands import keeps_projects
from redsched.decide.filters.limits import has_limits, host_limits
from redsched.decide.gains import Gains
from redsched.decide.gang import Found, Kind, PickPolicy, find, listed, requests_of, rules_of_places
from redsched.decide.gang.totals import best_score, hosts_that_fit, named, refusal
from redsched.decide.host_rules import HostRulesCache
from redsched.decide.note_text import RANKED, DecisionTexts
from redsched.decide.overlay import Overlay
from redsched.decide.pick import choose, with_first
from redsched.decide.plugins.registry import PluginRegistry, multipliers, plugin_registry
from redsched.decide.profile import RequestProfile
from redsched.decide.remembered import Remembered
from redsched.decide.reserving import Wait, wait_for, worth_waiting_for
from redsched.decide.result import Decision, Place
from redsched.decide.room import HostRoom, counts_by_host, rooms
from redsched.decide.scoring.spared import Spared
from redsched.decide.scoring.stranding import STRANDING
from redsched.decide.steps import Steps, Undecided, finished
from redsched.decide.top_hosts import Entry
from redsched.decide.work_limit import TooMuchWork, check_work
from redsched.model import Claim, HostLimit, Request
from redsched.model.records.explanations import Explanation, Miss
from redsched.settings import Settings

T = TypeVar("T")

FITTING_AT_ONCE = 64
"""How many hosts' pools one step searches."""
_NO_LIMIT = HostLimit()


class Decider:
    """Makes decisions over the columns of one cell, and caches the latest `remembered` request shapes.

    As far as `keeping` allows, it writes down how it decided, for the claims to keep; without it, never.
    """

    def __init__(
        self,
        columns: Columns,
        settings: Settings,
        known: PluginRegistry | None = None,
        remembered: int = 64,
        keeping: Allowance | None = None,
    ) -> None:
        self._columns = columns
        self._settings = settings
        self._registry = known or plugin_registry(settings)
        self._remembered = remembered
        self._spared = Spared(settings.spare_up_to)
        self._host_rules = HostRulesCache(columns, remembered)
        self._profiles: Remembered[tuple[Hashable, str | None], RequestProfile] = Remembered(remembered)
        self._keeping = keeping
        # Usually no filter reads the project, so requests of all projects share a shape.
        self._by_project = per_revision(lambda declared: self._registry.reads_projects or keeps_projects(declared))
        self._has_limits = per_revision(lambda declared: has_limits(declared, settings))

    def decide(self, request: Request, rng: Random, max_searches: int | None = None) -> Decision:
        """Propose hosts for every place of a request, or refuse it with reasons.

        `rng` makes concurrent schedulers choose different hosts. Raises InvalidRequest for an unknown policy or
        weigher; Undecided if a request for one place needs more than `max_searches` searches of pools in vain;
        TooMuchWork beyond the limit in force (`redsched.decide.work_limit`).
        """
        if request.members or request.count > 1:
            return self._decide_many(request, rng)
        profile = self._profile(request)
        candidates, pick_from = self._settings.candidates, self._settings.pick_from
        looked_at = max(candidates, pick_from)
        wanted = looked_at + request.alternates + 1
        if max_searches is not None and not profile.has_verified(wanted, max_searches):
            raise Undecided(self._search_steps(request, wanted))
        found = profile.verified(wanted)
        if not found:
            return self._refused(profile)
        # The hosts to pick from must not depend on the number of alternates.
        options = found[:looked_at]
        best = [entry for entry, _ in options[:pick_from]]
        first = choose(profile.ranking.peers([row for _, _, row in best], [-one for one, _, _ in best]), pick_from, rng)
        place = profile.places.get(first)
        if place is None:
            others = [[candidate] for number, (_, candidate) in enumerate(options) if number != first]
            offered = [profile.candidates(options[first][0][2]), *others]
            rows = [entry[2] for entry, _ in with_first(options, first)[:RANKED]]
            text = self._kept(profile, DecisionTexts.of_rows, rows)
            place = profile.places[first] = Place(listed(offered, candidates), group=request.server_group, note=text)
        places = (place,)
        rules = rules_of_places(request, (Kind(profile, 1),), (0,), self._columns) if request.server_group else ()
        alternates = _alternates(request, places, (entry for entry, _ in found))
        return Decision(places, alternates, -found[0][0][0], len(self._columns), profile.fitting.count, (), rules)

    def fitting_steps(self, request: Request) -> Steps[frozenset[str]]:
        """Return the hosts that one place of a request fits on, in steps between which the columns may change."""
        profile = self._profile(request)
        names = [self._columns.name(row) for row in profile.fitting.open_rows().tolist()]
        if profile.pools.is_plain:
            return frozenset(names)
        found = set[str]()
        for first in range(0, len(names), FITTING_AT_ONCE):
            profile = self._profile(request)
            for name in names[first : first + FITTING_AT_ONCE]:
                row = self._columns.row(name)
                if row is not None and profile.fitting.passes_all_now(row) and profile.takes(row):
                    found.add(name)
            yield
        return frozenset(found)

    def explain(self, request: Request, *hosts: str) -> Explanation:
        """Explain the decision on a request, and every check of the named hosts (unknown ones are skipped).

        Raises InvalidRequest for an unknown policy or weigher.
        """
        return finished(self.explain_steps(request, *hosts))

    def explain_steps(self, request: Request, *hosts: str) -> Steps[Explanation]:
        """Do what `explain` does, in steps. The first finds the counts, and the columns may change at each."""
        return self._explain_steps(request, hosts, Effort())

    def refusal_steps(self, request: Request, max_tests: int) -> Steps[Explanation]:
        """Explain a refusal in steps. The first finds the counts and the nearest hosts, the others what helps there.

        At most `max_tests` changes are tested, those of the nearest host first. Raises as `explain` does.
        """
        return self._explain_steps(request, (), Effort(max_tests))

    def _explain_steps(self, request: Request, hosts: Sequence[str], effort: Effort) -> Steps[Explanation]:
        if not request.members and request.count == 1:
            profile = self._profile(request)
            found = yield from explain_steps(profile, request, len(profile.verified(1)), hosts, effort)
            return replace(found, spared=self._spared_by(profile, found))
        kinds = self._kinds(request)
        gang = self._find(request, kinds, Random(0))
        kind = kinds[gang.failed]
        repeated = replace(kind.request, count=kind.count)
        places, of_places = kind.count if gang.places else gang.room, replace(effort)
        explanation = yield from explain_steps(kind.profile, repeated, places, hosts, effort)
        nearest = tuple(replace(miss, member=kind.member) for miss in explanation.nearest)
        ranked = tuple(replace(one, member=kind.member) for one in explanation.ranked)
        reasons, miss = explanation.reasons, None
        if places < kind.count and any(one.reason == COUNT for one in reasons):
            rule = gang.reason
            if not request.members:
                miss = yield from places_miss(kind.profile, repeated, gang.room, self._all_fit, of_places)
                rule = miss.rule if miss else rule
            reasons = tuple(replace(one, reason=rule) if one.reason == COUNT else one for one in reasons)
        reasons = named(kinds, kind, reasons)
        spared = self._spared_by(kind.profile, explanation)
        found = replace(explanation, reasons=reasons, nearest=nearest, ranked=ranked, spared=spared, places=miss)
        return found if miss is None else replace(found, checks=tuple(with_rule(one, miss) for one in found.checks))

    def _all_fit(self, request: Request) -> bool:
        """Return whether all places of a request fit."""
        if request.count == 1:
            return bool(self._profile(request).verified(1))
        return bool(self._find(request, self._kinds(request), Random(0)).places)

    def _spared_by(self, profile: RequestProfile, found: Explanation) -> dict[str, int]:
        """Return the scarce classes that a request that fits leaves to others, with the number of their hosts."""
        weighs = any(one.name == STRANDING and multiplier for one, multiplier in profile.ranking.weighing.items())
        hosts = self._spared.hosts(self._columns)
        unasked = hosts.unasked(profile.request) if found.ranked and weighs else ()
        return {name: int(np.count_nonzero(hosts.holders[name])) for name in unasked}

    def may_fit_later(self, request: Request, miss: Miss) -> bool:
        """Return whether ending claims could make a near miss fit: only rules about room and affinity reject it."""
        row = self._columns.row(miss.host)
        return row is not None and bool(self._profile_of(request, miss).fitting.eligible[row])

    def fits_after(self, request: Request, miss: Miss, claim: Claim) -> bool:
        """Return whether a near miss would take one place of a request, or of the miss' member, once a claim ended."""
        row = self._columns.row(miss.host)
        if row is None:
            return False
        profile = self._profile_of(request, miss)
        with Overlay(self._columns) as overlay:
            overlay.end(row, claim)
            return takes_now(profile, row)

    def in_the_way(self, request: Request, miss: Miss, claims: Sequence[Claim], now_ms: int) -> Miss:
        """Return a near miss with the claims in the way, of those on its host. Raises TooMuchWork."""
        row, profile = self._columns.row(miss.host), self._profile_of(request, miss)
        if row is None:
            return miss
        return with_claims(profile, partial(self._profile, remember=False), row, miss, claims, now_ms)

    def worth_waiting_for(self, request: Request, most: int, own: str = "") -> list[str]:
        """Return up to `most` hosts that would take one place of a request if they were empty (see `reserving`).

        `own`: the request's reservation. Raises TooMuchWork.
        """
        return worth_waiting_for(self._profile(request), most, own)

    def wait_for(self, request: Request, host: str, claims: Sequence[Claim], now_ms: int) -> Wait | None:
        """Return which of a host's claims have to leave before it takes one place of a request; None if it never does.

        Raises TooMuchWork.
        """
        return wait_for(self._profile(request), host, claims, now_ms)

    def gains(self, request: Request) -> Gains:
        """Return what tells whether changes may have made room for a request that was refused."""
        requests = [one for _, one in requests_of(request)]
        return Gains(self._columns, requests, [rules_of(one, self._registry.filters) for one in requests])

    def score_on(self, request: Request, host: str) -> float | None:
        """Return the score of a host for one place of a request, comparable with a decision's; None if it fits none."""
        row = self._columns.row(host)
        return None if row is None else self._profile(request).ranking.score_of(row)

    def room(self, request: Request, most: int) -> Iterator[HostRoom] | None:
        """Return the hosts with room for a request, and how many of its places each takes alone, up to `most` in all.

        None if the places on one host change those on others: then only decisions one after the other tell.
        """
        if request.members or request.count > 1:
            return None
        profile = self._profile(request)
        return rooms(profile, most, self._settings) if counts_by_host(profile) else None

    def limits(self, places: Iterable[Place]) -> dict[str, HostLimit]:
        """Return the limits on claims of each candidate of these places, for hosts that have a limit."""
        if not self._has_limits(self._columns):
            return {}
        hosts = {one.host for place in places for one in place.candidates}
        limits = {host: self._limit(host) for host in sorted(hosts)}
        return {host: limit for host, limit in limits.items() if limit != _NO_LIMIT}

    def _limit(self, host: str) -> HostLimit:
        row = self._columns.row(host)
        return _NO_LIMIT if row is None else host_limits(self._columns, row, self._settings)

    def _search_steps(self, request: Request, count: int) -> Steps[None]:
        """Search the pools of hosts until `count` fit, so that a decision finds them cached."""
        while not self._profile(request).has_verified(count, 1):
            yield

    def _decide_many(self, request: Request, rng: Random) -> Decision:
        kinds = self._kinds(request)
        found = self._find(request, kinds, rng)
        hosts = len(self._columns)
        if not found.places:
            return Decision((), (), 0.0, hosts, 0, refusal(kinds, found))
        alternates = self._alternates(request, kinds, found.places)
        rules = rules_of_places(request, kinds, found.numbers, self._columns)
        places = found.places if self._keeping is None else self._with_texts(kinds, found)
        return Decision(places, alternates, best_score(kinds), hosts, hosts_that_fit(kinds), (), rules)

    def _with_texts(self, kinds: tuple[Kind, ...], found: Found) -> tuple[Place, ...]:
        """Return the places with the texts that their claims keep: scores are those before any of them was placed."""
        texts: dict[int, str] = {}
        for number, kind in enumerate(kinds):
            own = [place for place, of in zip(found.places, found.numbers, strict=True) if of == number]
            if own:
                texts[number] = self._kept(kind.profile, DecisionTexts.of_places, own)
        made: dict[int, Place] = {}
        for number, place in zip(found.numbers, found.places, strict=True):
            if id(place) not in made:  # identical places on one host are one object
                made[id(place)] = Place(place.candidates, place.member, place.group, texts[number])
        return tuple([made[id(place)] for place in found.places])

    def _kept(self, profile: RequestProfile, text: Callable[[DecisionTexts, T], str], of: T) -> str:
        """Return the text of the decision that has just been made; '' if it is not kept."""
        if self._keeping is None or not self._keeping.begin():
            return ""
        try:
            return text(self._texts(profile), of)
        finally:
            self._keeping.end()

    def _texts(self, profile: RequestProfile) -> DecisionTexts:
        if not isinstance(profile.texts, DecisionTexts):
            texts = profile.texts = DecisionTexts(profile, profile.request.policy or self._settings.policy)
            return texts
        return profile.texts

    def _find(self, request: Request, kinds: tuple[Kind, ...], rng: Random) -> Found:
        pick = PickPolicy(self._settings.pick_from, rng)
        return find(self._columns, request, kinds, self._settings.candidates, pick)

    def _kinds(self, request: Request) -> tuple[Kind, ...]:
        """Return the kinds of a call's places, without letting the shapes of a gang evict all others from the cache."""
        members = requests_of(request)
        known: dict[Hashable, RequestProfile] = {}
        kinds = list[Kind]()
        for name, one in members:
            shape = one.shape_key()
            if shape not in known:
                check_work(f"preparing member {len(kinds) + 1} of {len(members)}")
                known[shape] = self._profile(one, shape, remember=len(members) <= self._remembered // 2)
            kinds.append(Kind(known[shape], one.count, name))
        return tuple(kinds)

    def _alternates(self, request: Request, kinds: tuple[Kind, ...], places: tuple[Place, ...]) -> tuple[str, ...]:
        """Return hosts that can take any of the places; () if places are related, as that could break a relation."""
        if not request.alternates or request.relations:
            return ()
        further = kinds[0].profile.verified(request.alternates + 2 * len(places))
        profiles = [kind.profile for kind in kinds[1:]]
        best = [entry for entry, _ in further if all(profile.fitting.passes_all_now(entry[2]) for profile in profiles)]
        return _alternates(request, places, best)

    def _refused(self, profile: RequestProfile) -> Decision:
        return Decision((), (), 0.0, len(self._columns), 0, profile.refusal())

    def _profile_of(self, request: Request, miss: Miss) -> RequestProfile:
        return self._profile(dict(requests_of(request))[miss.member])

    def _profile(self, request: Request, shape: Hashable = None, remember: bool = True) -> RequestProfile:
        # None, not "": a request without a project is not one whose project is irrelevant.
        project = request.project if self._by_project(self._columns) else None
        key = (shape or request.shape_key(), project)
        profile = self._profiles.get(key)
        if profile is None:
            # The ids belong to one call: the next call of this shape has other ids, or another count.
            unnamed = replace(request, claim_ids=()) if request.claim_ids else request
            weighing, filters = multipliers(unnamed, self._registry), self._registry.filters
            host_rules = self._host_rules.of(unnamed, project)
            profile = RequestProfile(self._columns, unnamed, weighing, filters, host_rules)
            if not remember:
                return profile
            self._profiles.add(key, profile)
        else:
            try:
                profile.refresh()
            except TooMuchWork:
                self._profiles.forget(key)  # it is refreshed in part only
                raise
        return profile


def _alternates(request: Request, places: tuple[Place, ...], best: Iterable[Entry]) -> tuple[str, ...]:
    if not request.alternates:
        return ()
    first = {one.chosen.host for one in places}
    further = [name for _, name, _ in best if name not in first]
    return tuple(further[: request.alternates + len(places)])
