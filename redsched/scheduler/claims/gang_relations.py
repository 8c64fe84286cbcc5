"""Keep the relations of an active gang when one of its members is placed again.

The choice of hosts is restricted by the member's relations to the other members at their current hosts. The claim
script refuses the place if one of them has moved since (`ClaimCall.expected`), so two concurrent moves cannot break a
relation.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from redsched.cache.columns import Columns
from redsched.decide.aggregates import aggregates_of
from redsched.errors import ClaimState, InvalidRequest, NoValidHost
from redsched.model import ENDING_OR_ENDED, Claim, Relation, RelationType, Request
from redsched.scheduler.cells import Cell


@dataclass(frozen=True, slots=True)
class Other:
    """Another claim of the gang.

    `hosts` are the hosts of its placements; `stays_on` are those of them that it will run on. It leaves evacuated hosts
    too, so these are excluded.
    """

    id: str
    hosts: tuple[str, ...] = ()
    stays_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """A relation of a claim, and the other claims that it involves."""

    relation: Relation
    others: tuple[Other, ...]

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts of the other claims."""
        return frozenset(host for one in self.others for host in one.hosts)

    @property
    def stays_on(self) -> list[str]:
        """The hosts that the other claims will run on, sorted by name."""
        return sorted({host for one in self.others for host in one.stays_on})

    def __str__(self) -> str:
        names = [f"{one.id} ({' and '.join(one.stays_on or one.hosts) or 'nowhere'})" for one in self.others]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{self.relation.type} with {', '.join(names[:3])}{more}"


async def held_by(cell: Cell, request: Request, claim: Claim, besides: Collection[str] = ()) -> tuple[Held, ...]:
    """Return the relations of a claim of a gang, each with the other claims that it involves.

    `besides` are claims that are placed again in the same call, so that their current hosts do not matter.
    """
    related = {one: others_in(claim, one, besides) for one in relations_of(request, claim)}
    ids = {claim_id for ids in related.values() for claim_id in ids}
    if not ids:
        return ()
    claims = await cell.store.claims.read(sorted(ids))
    leaving = await cell.store.hosts.draining(cell.updater.now_ms(), cell.updater.epoch)
    evacuated = {host for host, how in leaving.items() if how == "evacuate"}
    others = {claim_id: other_of(claim_id, claims.get(claim_id), evacuated) for claim_id in ids}
    return tuple(Held(one, tuple(others[claim_id] for claim_id in ids)) for one, ids in related.items() if ids)


def relations_of(request: Request, claim: Claim) -> tuple[Relation, ...]:
    """Return the relations of a gang that a claim takes part in."""
    name = claim.gang_member
    return tuple(relation for relation in request.relations if name and name in relation.members)


def bound_to(request: Request, name: str) -> tuple[list[str], list[str]]:
    """Return the members, this one included, that must be together with a member, and the types of these relations.

    Together means in one host, zone or aggregate. Relations are followed transitively.
    """
    ties = [one for one in request.relations if one.type is not RelationType.APART]
    names: set[str] = {name}
    for _ in ties:
        names |= {other for one in ties if names & set(one.members) for other in one.members}
    types = dict.fromkeys(str(one.type) for one in ties if names & set(one.members))
    return sorted(names), list(types)


def expected(held: Iterable[Held]) -> Mapping[str, tuple[str, ...]]:
    """Return the hosts of the other claims, by claim id, on which the choice of a place was based."""
    return {other.id: other.hosts for one in held for other in one.others}


def narrowed(place: Request, held: Iterable[Held], columns: Columns) -> Request:
    """Return the request `place`, restricted to hosts that satisfy the relations to the other claims.

    Raises NoValidHost if no host does, ClaimState if the restricted request would be invalid.
    """
    try:
        for one in held:
            place = _NARROW[one.relation.type](place, one, columns)
    except InvalidRequest as error:
        raise ClaimState(f"the relations of its gang cannot hold: {error.detail}") from error
    return place


def others_in(claim: Claim, relation: Relation, besides: Collection[str]) -> tuple[str, ...]:
    """Return the ids of the other claims that a relation of a claim involves, without those `besides`."""
    ids = (one for name in relation.members for one in claim.gang_members.get(name, ()))
    return tuple(one for one in ids if one != claim.claim_id and one not in besides)


def other_of(claim_id: str, claim: Claim | None, evacuated: Collection[str]) -> Other:
    """Return another claim of a gang, which stays on none of the evacuated hosts; None if it no longer exists."""
    if claim is None:
        return Other(claim_id)
    stays_on = (one.host for one in claim.placements if one.state not in ENDING_OR_ENDED and one.host not in evacuated)
    return Other(claim_id, claim.hosts, tuple(dict.fromkeys(stays_on)))


def _apart(place: Request, held: Held, _columns: Columns) -> Request:
    exclude = place.exclude_hosts | held.hosts
    if place.hosts and not place.hosts - exclude:
        raise _broken(held, f"its request allows only {', '.join(sorted(place.hosts)[:5])}")
    return replace(place, exclude_hosts=exclude)


def _shared_domain(place: Request, held: Held, _columns: Columns) -> Request:
    hosts = frozenset(held.stays_on)
    allowed = (hosts & place.hosts if place.hosts else hosts) - place.exclude_hosts
    if hosts and (len(hosts) > 1 or not allowed):
        raise _broken(held, f"it may not go to {' and '.join(sorted(hosts))}" if len(hosts) == 1 else "they are apart")
    return replace(place, hosts=allowed) if hosts else place


def _same_zone(place: Request, held: Held, columns: Columns) -> Request:
    zones = frozenset(_zone(columns, host) for host in held.stays_on)
    allowed = (zones & place.zones if place.zones else zones) - {""}
    if zones and (len(zones) > 1 or not allowed):
        named = " and ".join(one or "no zone" for one in sorted(zones))
        raise _broken(held, f"they are in {named}" + (", where it may not go" if len(zones) == 1 else ""))
    return replace(place, zones=allowed) if zones else place


def _same_aggregate(place: Request, held: Held, columns: Columns) -> Request:
    names = [frozenset(_aggregates(columns, host)) for host in held.stays_on]
    if not names:
        return place
    shared = names[0].intersection(*names[1:])
    if not shared:
        raise _broken(held, "no aggregate has all of their hosts")
    return replace(place, member_of=(*place.member_of, shared))


_NARROW = {
    RelationType.APART: _apart,
    RelationType.TOGETHER: _shared_domain,
    RelationType.SAME_ZONE: _same_zone,
    RelationType.SAME_AGGREGATE: _same_aggregate,
}


def _zone(columns: Columns, host: str) -> str:
    row = columns.row(host)
    return "" if row is None else columns.domain("zone", row)


def _aggregates(columns: Columns, host: str) -> list[str]:
    row = columns.row(host)
    return [] if row is None else aggregates_of(columns, row)


def _broken(held: Held, why: str) -> NoValidHost:
    return NoValidHost(f"the relations of its gang cannot hold, {held}: {why}")
