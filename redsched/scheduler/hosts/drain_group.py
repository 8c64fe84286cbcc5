"""Move a hard affinity group, or the related members of a gang, as a whole off drained hosts.

Each member may only be placed with the others, so they cannot move one by one. Their targets are decided together, as
for a gang, and one call of the claim script claims all of them. Each member then completes its move by itself, when its
work runs at the target. A member whose move fails has to follow those that have moved, and is moved alone.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from random import Random

from redsched.cache.entries import GroupState
from redsched.decide.recovery import is_recovery
from redsched.decide.result import Decision
from redsched.errors import ClaimState, NotFound, NoValidHost, StoreUnavailable
from redsched.model import ENDING_OR_ENDED, Claim, ClaimStatus, EndReason, GangMember, GroupPolicy, Relation, Request
from redsched.scheduler.cells import Cell
from redsched.scheduler.claims.deciding import as_if_left, decide_on, refusal_of
from redsched.scheduler.claims.gang_relations import bound_to, expected, relations_of
from redsched.scheduler.claims.replacements import MAX_TRIES, ReplacementPlacer, ReplacementSpec, raise_for
from redsched.scheduler.hosts.group_targets import PlacementTarget
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.selection.claim_call import ANY_RESERVATION, claim_call
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, Replacement

MAX_TOGETHER = 100

Found = tuple[str, Sequence[Claim]]
"""A description of the group or gang that may move as a whole, and its claims."""
_Seat = tuple[str, str]


class GroupOnItsWay(ClaimState):
    """The group moves once all of it is active."""


@dataclass(frozen=True, slots=True)
class GroupTarget:
    """Claims that move together, in the order of the places of `request`. `what` describes them in messages.

    `expected` has the hosts of other claims, by claim id, on which the choice of these places is based. `does` is what
    the group does as a whole, in messages.
    """

    what: str
    claims: tuple[Claim, ...]
    request: Request
    expected: Mapping[str, tuple[str, ...]]
    does: str = "moves"


class GroupDrain:
    """Moves whole groups and gangs, over all cells of a scheduler."""

    def __init__(self, replacements: ReplacementPlacer, quotas: Quotas) -> None:
        self._replacements = replacements
        self._quotas = quotas
        self._rng = Random()

    async def place(self, cell: Cell, claim: Claim) -> bool:
        """Move the group or gang of a claim. Returns False if the claim is in none that moves as a whole.

        Raises NoValidHost, ClaimState, StaleToken, NotFound, Settling, QuotaExceeded.
        """
        return await self.claim(cell, claim, lambda: self._group(cell, claim), _moved)

    async def claim(
        self,
        cell: Cell,
        claim: Claim,
        find: Callable[[], Awaitable[GroupTarget | None]],
        replacement: Callable[[Claim], Replacement],
    ) -> bool:
        """Claim a place for each claim of the group that `find` returns, all at once. False if it returns None.

        `claim` is the one that errors are about. Raises as `place` does.
        """
        for _ in range(MAX_TRIES):
            group = await find()
            if group is None:
                return False
            decision, decided_on = await self._decide(cell, group)
            answer = await self._quotas.claim(cell, _call(cell, group, replacement, decision, *decided_on))
            cell.updater.apply_reply(answer)
            if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
                return True
            raise_for(answer, claim)
            if answer.outcome is Outcome.UNKNOWN:
                raise NotFound(f"{', '.join(answer.unknown)} is no longer declared")
            await cell.mark_down(answer)
        raise StoreUnavailable(f"no host could be claimed in {MAX_TRIES} tries, though some seemed free: retry")

    async def check_movable(self, cell: Cell, claim: Claim) -> bool:
        """Return whether the claim's group or gang moves as a whole, and check that it has a place now.

        Raises as `place` does.
        """
        group = await self._group(cell, claim)
        if group is not None:
            await self._decide(cell, group)
        return group is not None

    async def _group(self, cell: Cell, claim: Claim) -> GroupTarget | None:
        leaving = await cell.store.hosts.draining(cell.updater.now_ms(), cell.updater.epoch)
        drained = frozenset(host for host, how in leaving.items() if how == "move")
        for find in (_in_server_group, self._in_gang):
            what, claims = await find(cell, claim, drained)
            if len(claims) > 1:
                refuse_group(what, claims)
                return await self._to_move(cell, what, claims)
        return None

    async def _in_gang(self, cell: Cell, claim: Claim, drained: frozenset[str]) -> Found:
        """Return the claims on drained hosts with which a claim must share a host, zone or aggregate."""
        if not claim.gang_members:
            return "", ()
        request = await cell.requests.of(claim)
        if not request.relations:
            return "", ()
        names, types = bound_to(request, claim.gang_member)
        ids = [one for name in names for one in claim.gang_members.get(name, ())]
        claims = (await cell.store.claims.read(ids)).values() if ids else ()
        leaving = (one for one in claims if claim.is_with(one) and one.host in drained)
        found = [one for one in leaving if one.state not in ENDING_OR_ENDED]
        batch = ", ".join(one.claim_id for one in found[:3]) + (", ..." if len(found) > 3 else "")
        return f"gang of {batch} ({', '.join(types)})", found

    async def _to_move(self, cell: Cell, what: str, claims: Sequence[Claim]) -> GroupTarget:
        spec = ReplacementSpec(EndReason.MOVED, exclude=frozenset(one.host for one in claims))
        ids = frozenset(one.claim_id for one in claims)
        return as_gang(what, [await self._replacements.alone(cell, one, spec, ids) for one in claims])

    async def _decide(self, cell: Cell, group: GroupTarget) -> tuple[Decision, tuple[str, int]]:
        """Return a decision with the epoch and seq of the columns it is based on. Raises NoValidHost, Settling."""

        def decide() -> Decision:
            with as_if_left(cell.updater.columns, group.claims):
                return cell.decider.decide(group.request, self._rng)

        decision, decided_on = await decide_on(cell, group.request, decide)
        if decision.places:
            return decision, decided_on
        error = await refusal_of(cell, group.request, *group.claims)
        if not isinstance(error, NoValidHost):
            raise error
        whole = f"{group.what} {group.does} as a whole, {len(group.claims)} members"
        raise NoValidHost(f"{whole}: {error.detail}", error.facts)


async def _in_server_group(cell: Cell, claim: Claim, drained: frozenset[str]) -> Found:
    """Return all members of a claim's hard affinity group; none if one of them is on a host that is not drained."""
    state = cell.updater.columns.declared.groups.get(claim.server_group)
    if state is None or not leaves_as_a_whole(state, drained):
        return "", ()
    pages = [page async for page in cell.store.claims.unended_on(tuple(state.counts("host")))]
    return f"server group {claim.server_group}", [
        one for page in pages for one in page if one.server_group == claim.server_group
    ]


def leaves_as_a_whole(state: GroupState, drained: Set[str]) -> bool:
    """Return whether a server group has hard affinity and no member on a host that is not drained."""
    return state.group.policy is GroupPolicy.AFFINITY and drained >= state.counts("host").keys()


def refuse_group(what: str, claims: Sequence[Claim]) -> None:
    """Raise ClaimState if a group cannot move as a whole, now (GroupOnItsWay) or ever."""
    on_its_way = next((one for one in claims if one.state is not ClaimStatus.ACTIVE or len(one.placements) > 1), None)
    if on_its_way is not None:
        raise GroupOnItsWay(
            f"{what} moves as a whole once all of it is active: claim {on_its_way.claim_id} is "
            f"{'moving' if len(on_its_way.placements) > 1 else on_its_way.state}"
        )
    if len(claims) > MAX_TOGETHER:
        raise ClaimState(
            f"{what} has {len(claims)} members, and at most {MAX_TOGETHER} move as a whole: release "
            "some, and claim them again"
        )
    if len({one.project for one in claims}) > 1:
        raise ClaimState(
            f"the members of {what} belong to several projects, and do not move as a whole: release them, "
            "and claim them again"
        )


def as_gang(what: str, target: Sequence[PlacementTarget]) -> GroupTarget:
    """Return the request for all of these placements together, as for a gang."""
    alike: dict[tuple[_Seat, str], list[PlacementTarget]] = {}
    for one in target:
        alike.setdefault((_seat(one.claim), one.place.shape()), []).append(one)
    kinds = list(alike.values())
    members = tuple(
        GangMember(f"m{number}", replace(batch[0].place, count=len(batch), project="", consumer=""))
        for number, batch in enumerate(kinds)
    )
    request = Request(
        members=members,
        relations=_relations_between(kinds),
        project=target[0].place.project,
        lease_s=max(one.place.lease_s for one in target),
    )
    expected_hosts = {claim_id: hosts for one in target for claim_id, hosts in expected(one.held).items()}
    return GroupTarget(what, tuple(one.claim for batch in kinds for one in batch), request, expected_hosts)


def _seat(claim: Claim) -> _Seat:
    """Return the claim's gang, identified by the id of the gang's first claim, and the claim's member name."""
    return next((ids[0] for ids in claim.gang_members.values()), ""), claim.gang_member


def _relations_between(kinds: Sequence[Sequence[PlacementTarget]]) -> tuple[Relation, ...]:
    """Return the relations of the claims' gangs, between the kinds of places that move."""
    names: dict[tuple[str, Relation], list[str]] = {}
    for number, (one, *_) in enumerate(kinds):
        for relation in relations_of(one.request, one.claim):
            names.setdefault((_seat(one.claim)[0], relation), []).append(f"m{number}")
    return tuple(Relation(relation.type, tuple(batch)) for (_, relation), batch in names.items())


def _call(
    cell: Cell,
    group: GroupTarget,
    replacement: Callable[[Claim], Replacement],
    decision: Decision,
    epoch: str,
    seen_seq: int,
) -> ClaimCall:
    """Return the call that claims all new places. What each claim stores of its own request does not change."""
    recovers = all(is_recovery(cell.updater.columns, one) for one in group.claims)
    reservation = ANY_RESERVATION if recovers else ""
    ids = [one.claim_id for one in group.claims]
    call = claim_call(group.request, cell, decision, ids, epoch, seen_seq, reservation=reservation)
    pairs = zip(call.members, group.claims, strict=True)
    members = tuple(replace(member, replacement=replacement(one)) for member, one in pairs)
    return replace(call, members=members, fresh=True, request="", is_gang=False, carried={}, expected=group.expected)


def _moved(claim: Claim) -> Replacement:
    return Replacement(claim.host, claim.token, EndReason.MOVED, 0, claim.gang)
