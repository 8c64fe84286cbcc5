"""Together: moves a hard affinity group as a whole off a host that is drained.

Each member may only go where the others are, so none of them can go first. Where all of them go is decided as for a
gang, and one call of the claim script holds all the new places. Each member then switches on its own, when its work
runs there. One whose move fails is held by nobody but those that have arrived, and follows them alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from redsched.decide import Decision
from redsched.decide.left_behind import without_left_behind
from redsched.errors import ClaimState, NoValidHost, StoreUnavailable, Unknown
from redsched.model import Claim, ClaimStatus, Gang, GroupPolicy, Request, Why
from redsched.scheduler.cells import Cell
from redsched.scheduler.claiming import claim_call
from redsched.scheduler.deciding import decide_on, refusal_of
from redsched.scheduler.quotas import Quotas
from redsched.scheduler.successors import MOST_TRIES, Successors, Wanted, raise_for
from redsched.store import Again, ClaimCall, Member, Outcome

MOST_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class _Group:
    """The members that move, in the order of the places of `request`."""

    name: str
    claims: tuple[Claim, ...]
    request: Request


class Together:
    """Moves whole groups, over all cells of a scheduler."""

    def __init__(self, successors: Successors, quotas: Quotas) -> None:
        self._successors = successors
        self._quotas = quotas
        self._rng = Random()

    async def place(self, cell: Cell, claim: Claim) -> bool:
        """Move the group of a claim; False where it is in none that moves as a whole.

        Raises NoValidHost, ClaimState, StaleToken, Unknown, Settling, QuotaExceeded.
        """
        group = await self._group(cell, claim)
        if group is None:
            return False
        for _ in range(MOST_TRIES):
            decision, decided_on = await self._decide(cell, group)
            answer = await self._quotas.claim(cell, _call(cell, group, decision, *decided_on))
            cell.mirror.apply_reply(answer)
            if answer.outcome in (Outcome.OK, Outcome.SAME):
                return True
            raise_for(answer, claim)
            if answer.outcome is Outcome.UNKNOWN:
                raise Unknown(f"nobody has declared {', '.join(answer.unknown)} any more")
            await cell.mark_down(answer)
        raise StoreUnavailable(f"no host could be claimed in {MOST_TRIES} tries, though some seemed free: retry")

    async def look(self, cell: Cell, claim: Claim) -> bool:
        """Whether the group of a claim moves as a whole, and has a place now. Raises as `place` does."""
        group = await self._group(cell, claim)
        if group is not None:
            await self._decide(cell, group)
        return group is not None

    async def _group(self, cell: Cell, claim: Claim) -> _Group | None:
        state = cell.mirror.columns.declared.groups.get(claim.group)
        if state is None or state.group.policy is not GroupPolicy.AFFINITY:
            return None
        hosts, leaving = tuple(state.counts("host")), await cell.store.leaving_hosts(cell.mirror.now_ms())
        if any(leaving.get(host) != "move" for host in hosts):
            return None
        pages = [page async for page in cell.store.living_on(hosts)]
        claims = [one for page in pages for one in page if one.group == claim.group]
        _refuse(claim.group, claims)
        wanted = Wanted(Why.MOVED, exclude=frozenset(hosts))
        asked = [(one, (await self._successors.alone(cell, one, wanted)).place) for one in claims]
        return _as_gang(claim.group, asked) if len(claims) > 1 else None

    async def _decide(self, cell: Cell, group: _Group) -> tuple[Decision, tuple[str, int]]:
        """Return a decision with the epoch and seq of the columns decided on. Raises NoValidHost, Settling."""

        def decide() -> Decision:
            with without_left_behind(cell.mirror.columns, *group.claims):
                return cell.decider.decide(group.request, self._rng)

        decision, decided_on = await decide_on(cell, decide)
        if decision.places:
            return decision, decided_on
        error = await refusal_of(cell, group.request, *group.claims)
        if not isinstance(error, NoValidHost):
            raise error
        raise NoValidHost(
            f"server group {group.name} moves as a whole, {len(group.claims)} members: {error.detail}", error.facts
        )


def _refuse(name: str, claims: Sequence[Claim]) -> None:
    """Raise ClaimState where a group cannot move as a whole, now or at all."""
    on_its_way = next((one for one in claims if one.state is not ClaimStatus.ACTIVE or len(one.placements) > 1), None)
    if on_its_way is not None:
        raise ClaimState(
            f"server group {name} moves as a whole once all of it is active: claim {on_its_way.id} is "
            f"{'moving' if len(on_its_way.placements) > 1 else on_its_way.state}"
        )
    if len(claims) > MOST_TOGETHER:
        raise ClaimState(
            f"server group {name} has {len(claims)} members, and no more than {MOST_TOGETHER} move as a whole: release "
            "some, and claim them anew"
        )
    if len({one.project for one in claims}) > 1:
        raise ClaimState(
            f"the members of server group {name} are of several projects, and do not move as a whole: release them, "
            "and claim them anew"
        )


def _as_gang(name: str, asked: Sequence[tuple[Claim, Request]]) -> _Group:
    alike: dict[str, list[tuple[Claim, Request]]] = {}
    for claim, place in asked:
        alike.setdefault(place.shape(), []).append((claim, place))
    kinds = list(alike.values())
    members = tuple(
        Gang(f"m{number}", replace(some[0][1], count=len(some), project="", consumer=""))
        for number, some in enumerate(kinds)
    )
    lease_s = max(place.lease_s for _, place in asked)
    request = Request(members=members, project=asked[0][0].project, lease_s=lease_s)
    return _Group(name, tuple(claim for some in kinds for claim, _ in some), request)


def _call(cell: Cell, group: _Group, decision: Decision, epoch: str, seen_seq: int) -> ClaimCall:
    """The call that holds all new places. What claims keep of their own requests it leaves as it is."""
    call = claim_call(group.request, cell, decision, [one.id for one in group.claims], epoch, seen_seq)
    members = tuple(map(_moved, call.members, group.claims))
    return replace(call, members=members, fresh=True, request="", is_gang=False, max_attempts=1)


def _moved(member: Member, claim: Claim) -> Member:
    return replace(member, again=Again(claim.host, claim.token, Why.MOVED, 0, claim.gang))
