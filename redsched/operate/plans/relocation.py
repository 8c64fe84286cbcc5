"""Where a claim of a copy would go: by the rules of a move, of a drain with moves, or of an evacuation.

The rules are those of the scheduler's own verbs (`redsched.scheduler.claims.replacements` and
`redsched.scheduler.hosts.drain_group`); only the claims come from the copy instead of the store.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace

from redsched.decide.lost_members import followers_on
from redsched.decide.recovery import before_reservations
from redsched.decide.result import Decision, Place
from redsched.errors import ClaimState, Conflict, NotFound, NoValidHost
from redsched.model import ENDING_OR_ENDED, HELD, Claim, ClaimStatus, GangOnExit, Hints, Request
from redsched.model.records.plans import PlannedMove
from redsched.operate.plans.cell_copy import CellCopy
from redsched.scheduler.claims.deciding import as_if_left
from redsched.scheduler.claims.gang_relations import (
    Held,
    bound_to,
    narrowed,
    other_of,
    others_in,
    relations_of,
)
from redsched.scheduler.claims.single_request import elsewhere, single_claim_request
from redsched.scheduler.hosts.drain_group import GroupTarget, as_gang, leaves_as_a_whole, refuse_group
from redsched.scheduler.hosts.group_targets import MAX_FOLLOWERS, PlacementTarget, decided
from redsched.scheduler.references import undeclared_in
from redsched.scheduler.selection.refusal import refusal_text

NOWHERE: frozenset[str] = frozenset()


class Relocation:
    """Places claims of one copy again. `leaving` are hosts being drained, `gone` those being evacuated.

    `policy` replaces the policies of the claims' requests.
    """

    def __init__(self, copy: CellCopy, leaving: Set[str] = NOWHERE, gone: Set[str] = NOWHERE, policy: str = "") -> None:
        self._copy = copy
        self._leaving, self._gone = leaving, gone
        self._closed = leaving | gone
        self._policy = policy
        self._alone: dict[Hashable, Request] = copy.alone

    def move(
        self, claim: Claim, hosts: frozenset[str] = NOWHERE, exclude: frozenset[str] = NOWHERE
    ) -> list[PlannedMove]:
        """Give a claim another place, alone or with the group or gang that leaves with it. Returns who got one.

        Raises NoValidHost, ClaimState, NotFound: it has no other place, or may not be moved. TooMuchWork.
        """
        if self._gone and claim.gang_on_exit is not GangOnExit.KEEP:
            return self._restart_gang(claim)
        try:
            return [self._move_to(claim, self.place_of(claim, hosts, exclude))]
        except NoValidHost:
            group = self._group(claim) if self._leaving else None
            if group is None:
                raise
        return self._move_group(group)

    def place_of(self, claim: Claim, hosts: frozenset[str] = NOWHERE, exclude: frozenset[str] = NOWHERE) -> Place:
        """Return another place for a claim, without giving it. Raises as `move` does."""
        if claim.host in self._closed and not (hosts or exclude):
            # The host takes nothing more anyway. Without its name, claims of equal requests have equal targets, whose
            # decisions share what is cached.
            decision = self._decided(self._target(claim, self.request_of(claim)))
            if decision.places:
                return decision.places[0]
        target = self.target_of(claim, hosts, exclude)
        decision = self._decided(target)
        if decision.places:
            return decision.places[0]
        kept = "; ".join(map(str, target.held))
        relations = f"; the relations of its gang must hold: {kept}" if kept else ""
        raise NoValidHost(refusal_text(decision.hosts, target.place, decision.reasons) + relations)

    def target_of(
        self,
        claim: Claim,
        hosts: frozenset[str] = NOWHERE,
        exclude: frozenset[str] = NOWHERE,
        besides: Collection[str] = (),
    ) -> PlacementTarget:
        """Return the placement to decide for a claim. Raises NoValidHost, ClaimState, NotFound."""
        leaves = {claim.host} if claim.host and claim.state in HELD else NOWHERE
        return self._target(claim, elsewhere(self.request_of(claim), hosts, exclude | leaves), besides)

    def anywhere(self, claim: Claim) -> Request:
        """Return the request for a claim's place, which may also be the one that it has. Raises as `move` does."""
        return self._target(claim, self.request_of(claim)).place

    def _target(self, claim: Claim, place: Request, besides: Collection[str] = ()) -> PlacementTarget:
        copy = self._copy
        if claim.gang in copy.unready:
            raise ClaimState(
                f"claim {claim.claim_id} belongs to a gang that is not active yet: it cannot be placed alone"
            )
        request = copy.request_of(claim)
        held = self._held(request, claim, besides)
        target = PlacementTarget(claim, request, narrowed(place, held, copy.columns) if held else place, held=held)
        if missing := next(undeclared_in(target.place, copy.columns), ""):
            raise NotFound(f"{missing} is not declared")
        followers = self._followers(claim)
        return replace(target, followers=followers) if followers else target

    def _decided(self, target: PlacementTarget) -> Decision:
        return decided(self._copy.decider, self._copy.columns, target, self._copy.rng)

    def request_of(self, claim: Claim) -> Request:
        """Return the request for one claim alone, with the hosts of the claims in its hints."""
        key = (
            self._policy,
            claim.digest,
            claim.gang_member,
            claim.server_group,
            tuple(sorted((claim.resizing_to or claim.slots).items())),
        )
        found = self._alone.get(key)
        if found is None:
            found = single_claim_request(self._copy.request_of(claim), claim)
            if self._policy:
                found = replace(found, policy=self._policy, weights={})
            self._alone[key] = found
        return with_hints(found, self._copy.claims)

    def _held(self, request: Request, claim: Claim, besides: Collection[str]) -> tuple[Held, ...]:
        claims = self._copy.claims
        related = {one: others_in(claim, one, besides) for one in relations_of(request, claim)}
        return tuple(
            Held(one, tuple(other_of(other, claims.get(other), self._gone) for other in ids))
            for one, ids in related.items()
            if ids
        )

    def _followers(self, claim: Claim) -> tuple[Request, ...]:
        """Return a place for each claim that must follow this one to another host, as its group has been lost."""
        found = list[Request]()
        for host in followers_on(self._copy.columns, claim) if claim.server_group else ():
            for one in self._copy.on_host(host):
                if one.server_group == claim.server_group and one.claim_id != claim.claim_id and one.state in HELD:
                    with suppress(Conflict, NotFound):
                        found.append(elsewhere(self.request_of(one), NOWHERE, frozenset((one.host,))))
        return tuple(found[:MAX_FOLLOWERS])

    def _group(self, claim: Claim) -> GroupTarget | None:
        """Return the group or gang that leaves with a claim; None if it leaves alone. Raises as `move` does."""
        for what, claims in (self._server_group(claim), self._gang(claim)):
            if len(claims) > 1:
                refuse_group(what, claims)
                ids, hosts = [one.claim_id for one in claims], frozenset(one.host for one in claims)
                return as_gang(what, [self.target_of(one, NOWHERE, hosts, ids) for one in claims])
        return None

    def _server_group(self, claim: Claim) -> tuple[str, list[Claim]]:
        state = self._copy.columns.declared.groups.get(claim.server_group)
        if state is None or not leaves_as_a_whole(state, self._leaving):
            return "", []
        members = (one for host in state.counts("host") for one in self._copy.on_host(host))
        return f"server group {claim.server_group}", [one for one in members if one.server_group == claim.server_group]

    def _gang(self, claim: Claim) -> tuple[str, list[Claim]]:
        if not claim.gang_members:
            return "", []
        names, types = bound_to(self._copy.request_of(claim), claim.gang_member)
        ids = (one for name in names for one in claim.gang_members.get(name, ()))
        claims = (self._copy.claims[one] for one in ids if one in self._copy.claims)
        found = [one for one in claims if one.host in self._leaving and one.state not in ENDING_OR_ENDED]
        return f"gang of {', '.join(one.claim_id for one in found[:3])} ({', '.join(types)})", found

    def _restart_gang(self, claim: Claim) -> list[PlannedMove]:
        """Stop a gang that has lost a member with its host, and place all of it again, as its `gang_on_exit` says."""
        if claim.gang_on_exit is GangOnExit.RELEASE:
            raise ClaimState("it ends, and all of its gang is released: its gang_on_exit is release")
        copy, mark = self._copy, self._copy.mark
        gang = [copy.claims[one] for one in claim.gang_ids if one in copy.claims and claim.is_with(copy.claims[one])]
        gang = [one for one in gang if one.is_live]
        whole = as_gang(f"gang of {', '.join(one.claim_id for one in gang[:3])}", self._targets(gang))
        for one in gang:
            if one.state in HELD:
                copy.end(one)
        stopped = [replace(one, state=ClaimStatus.PENDING) for one in whole.claims]
        with before_reservations(copy.columns, *stopped):
            decision = copy.decide(whole.request)
        if not decision.places:
            copy.undo_to(mark)
            raise _no_room(whole, "is placed again", decision)
        return [self._move_to(*one) for one in zip(stopped, decision.places, strict=True)]

    def _targets(self, gang: Sequence[Claim]) -> list[PlacementTarget]:
        """Return the placement to decide for each of these claims, all of which have stopped."""
        ids = [one.claim_id for one in gang]
        return [self._target(one, self.request_of(one), ids) for one in gang]

    def _move_group(self, group: GroupTarget) -> list[PlannedMove]:
        with as_if_left(self._copy.columns, group.claims):
            decision = self._copy.decide(group.request)
        if not decision.places:
            raise _no_room(group, "moves", decision)
        return [self._move_to(*one) for one in zip(group.claims, decision.places, strict=True)]

    def _move_to(self, claim: Claim, place: Place) -> PlannedMove:
        self._copy.move(claim, place)
        return PlannedMove(claim.claim_id, claim.project, claim.host, place.chosen.host)


def _no_room(group: GroupTarget, does: str, decision: Decision) -> NoValidHost:
    why = refusal_text(decision.hosts, group.request, decision.reasons)
    return NoValidHost(f"{group.what} {does} as a whole, {len(group.claims)} members: {why}")


def with_hints(request: Request, claims: Mapping[str, Claim]) -> Request:
    """Replace the claims in a request's hints by their hosts, without those that have ended. Raises NoValidHost."""
    if request.members:
        members = (replace(one, request=with_hints(one.request, claims)) for one in request.members)
        return replace(request, members=tuple(members))
    hints = request.hints
    if not (hints.same_host or hints.different_host):
        return request
    same, different = _hosts_of(hints.same_host, claims), _hosts_of(hints.different_host, claims)
    hosts = (request.hosts & same if request.hosts else same) if same else request.hosts
    if same and not hosts:
        raise NoValidHost(f"same_host: claim {', '.join(sorted(hints.same_host))} runs on no host that it may use")
    rest = Hints(build_near_host_ip=hints.build_near_host_ip, cidr=hints.cidr)
    return replace(request, hosts=hosts, exclude_hosts=request.exclude_hosts | different, hints=rest)


def _hosts_of(claim_ids: Iterable[str], claims: Mapping[str, Claim]) -> frozenset[str]:
    found = (claims.get(one) for one in claim_ids)
    return frozenset(one.host for one in found if one is not None and one.placements)
