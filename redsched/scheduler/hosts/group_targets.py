"""Evacuate a hard affinity group: place its first member where the others can follow.

The members are placed again one by one, and all must follow the first. So the first member's place is decided for all
of them, as for a gang. If no host (zone, label value) has room for all, the first member is placed wherever it fits:
running a part of the work is better than none, and the rest waits for room there.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from random import Random

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.lost_members import ignoring_lost_members
from redsched.decide.recovery import before_reservations
from redsched.decide.result import Decision
from redsched.model import Claim, GangMember, Request
from redsched.scheduler.claims.gang_relations import Held

MAX_FOLLOWERS = 100
"""The most followers that the decision for the first member considers: more would take too long."""


@dataclass(frozen=True, slots=True)
class PlacementTarget:
    """The placement to decide for a claim that is placed again: `place`, one place of its `request`, elsewhere.

    If the claim is the first of a group, `followers` has such a place for each other member whose request is known.
    `held` has the relations to other members of the gang that the place must satisfy.
    """

    claim: Claim
    request: Request
    place: Request
    followers: tuple[Request, ...] = ()
    held: tuple[Held, ...] = ()


def decided(decider: Decider, columns: Columns, target: PlacementTarget, rng: Random) -> Decision:
    """Return the decision on the claim's place, with its followers if all of them fit together."""
    with ignoring_lost_members(columns, target.claim), before_reservations(columns, target.claim):
        state = columns.declared.groups.get(target.claim.server_group)
        if target.followers and state is not None and not state.members:
            decision = _for_all(decider, target, rng)
            if decision.places:
                return decision
        return decider.decide(target.place, rng)


def _for_all(decider: Decider, target: PlacementTarget, rng: Random) -> Decision:
    found = decider.decide(_gang(target.place, target.followers), rng)
    if not found.places:
        return found
    hosts = frozenset(one.host for one in found.places[0].candidates)
    return decider.decide(replace(target.place, hosts=hosts), rng)


def _gang(first: Request, followers: Collection[Request]) -> Request:
    alike = Counter(one.shape() for one in followers)
    kinds = {one.shape(): one for one in followers}
    target = [first, *(replace(kinds[shape], count=number) for shape, number in alike.items())]
    members = (GangMember(f"m{n}", replace(one, project="", consumer="")) for n, one in enumerate(target))
    return Request(members=tuple(members), project=first.project)
