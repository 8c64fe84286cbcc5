"""What places of a gang must or must not share, by the numbers of their kinds: colocations and places apart."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from redsched.cache.columns import Columns
from redsched.decide.affinity import SERVER_GROUP, counts
from redsched.decide.gang.kinds import Kind
from redsched.model import GroupPolicy, RelationType, Request

AGGREGATE = "aggregate"
"""The topology of hosts in one aggregate. Unlike a zone, a host may be in any number of them."""

_BY: Mapping[RelationType, str] = MappingProxyType(
    {
        RelationType.TOGETHER: "host",
        RelationType.SAME_ZONE: "zone",
        RelationType.SAME_AGGREGATE: AGGREGATE,
    }
)
_WIDE_FIRST = (AGGREGATE, "zone", "label", "host")


@dataclass(frozen=True, slots=True)
class Colocation:
    """A requirement that all places of these kinds lie in one host, zone, label value or aggregate (`by`).

    `reason` names what requires it. The search fixes the domain before it places any of them, so every candidate lies
    in it, and the claim script has nothing to check; except for a server group with affinity, which others may join at
    the same time.
    """

    by: str
    kinds: frozenset[int]
    reason: str


def colocations_of(call: Request, kinds: Sequence[Kind], columns: Columns) -> tuple[Colocation, ...]:
    """Return all colocations of a call, the widest first; omits those that apply to a single place."""
    found = dict.fromkeys((*_related(call, kinds), *_affine(kinds, columns)))
    colocations = (colocation for colocation in found if sum(kinds[number].count for number in colocation.kinds) > 1)
    return tuple(sorted(colocations, key=lambda colocation: _WIDE_FIRST.index(colocation.by.partition(":")[0])))


def aparts_of(call: Request, kinds: Sequence[Kind]) -> tuple[frozenset[int], ...]:
    """Return the kinds of each relation `apart`."""
    return tuple(
        _numbers(relation.members, kinds) for relation in call.relations if relation.type is RelationType.APART
    )


def _related(call: Request, kinds: Sequence[Kind]) -> Iterator[Colocation]:
    for relation in call.relations:
        if relation.type in _BY:
            yield Colocation(_BY[relation.type], _numbers(relation.members, kinds), relation.type)


def _affine(kinds: Sequence[Kind], columns: Columns) -> Iterator[Colocation]:
    """Yield a colocation for each affinity group without members. If it has members, a rule says where to go."""
    names = dict.fromkeys(kind.request.server_group for kind in kinds if kind.request.server_group)
    for name in names:
        state = columns.declared.groups.get(name)
        if state is None or state.group.policy is not GroupPolicy.AFFINITY:
            continue
        if not counts(columns, name, state.group.by):
            numbers = frozenset(n for n, kind in enumerate(kinds) if kind.request.server_group == name)
            yield Colocation(state.group.by, numbers, SERVER_GROUP)


def _numbers(members: Sequence[str], kinds: Sequence[Kind]) -> frozenset[int]:
    return frozenset(number for number, kind in enumerate(kinds) if kind.member in members)
