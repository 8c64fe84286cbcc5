"""The requests of schedulers. A claim id tells its request, so that a process that finds the id can repeat it.

Owners create ids as `s<scheduler>-<kind>-<number>`, with `-<place>` appended if several places are requested. If the
server creates the ids, that text is the request's `consumer`, by which the operator finds the claims of a killed
caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from redsched.model import (
    GangMember,
    GroupPolicy,
    Inventory,
    Quota,
    Relation,
    RelationType,
    Request,
    ServerGroup,
    SharedPool,
)

HOUR_S = 3600
LEASE_S = 5
"""The lease of a claim that no host has accepted yet."""

MAX_HELD = 32
"""The number of claims that one scheduler holds at a time: together some four fifths of the fleet."""

APART = ServerGroup("apart", GroupPolicy.ANTI_AFFINITY, max_per_host=2)
LICENCES = SharedPool("licences", {"CUSTOM_SEAT": Inventory(40)})
PROJECT = "faults"
QUOTA = Quota("limited", {"VCPU": 24, "claims": 20})
"""The quota of the project of `metered` requests, which is less than they would use."""

RESIZED = ("one", "sure", "metered")
"""Kinds whose claims are resized at times, between one VCPU and two; some claims of all kinds are moved."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request: its parameters, and its weight among the kinds."""

    weight: int
    resources: Mapping[str, int]
    places: int = 1
    server_group: str = ""
    alternates: int = 0
    until: Literal["claimed", "active"] = "claimed"
    project: str = PROJECT
    is_made: bool = False
    """Whether the server creates its ids."""
    members: tuple[GangMember, ...] = ()
    """The members of a gang; then `resources` is empty."""
    relations: tuple[Relation, ...] = ()
    max_runtime_s: int = 0
    """Far longer than a round, and shorter than the clocks of stores are set wrong by."""


FRONT, BACK = GangMember("front", Request({"VCPU": 2})), GangMember("back", Request({"VCPU": 1}, count=2))
APART_FROM_EACH_OTHER = (Relation(RelationType.APART, (FRONT.name, BACK.name)),)

KINDS: Mapping[str, Kind] = {
    "one": Kind(5, {"VCPU": 1, "MEMORY_MB": 512}),
    "large": Kind(1, {"VCPU": 3, "MEMORY_MB": 2048}),
    "pair": Kind(2, {"VCPU": 1}, places=2),
    "apart": Kind(2, {"VCPU": 1}, server_group=APART.name),
    "seat": Kind(2, {"VCPU": 1, "CUSTOM_SEAT": 1}),
    "sure": Kind(3, {"VCPU": 1, "MEMORY_MB": 256}, until="active", max_runtime_s=2 * HOUR_S),
    "metered": Kind(3, {"VCPU": 1}, project=QUOTA.project),
    "gpu": Kind(2, {"CUSTOM_GPU_MILLI": 400}, alternates=2),
    "made": Kind(2, {"VCPU": 1}, is_made=True),
    "madesure": Kind(1, {"VCPU": 1}, until="active", is_made=True),
    "gang": Kind(1, {}, places=3, members=(FRONT, BACK), relations=APART_FROM_EACH_OTHER),
    "suregang": Kind(1, {}, places=3, until="active", members=(FRONT, BACK), relations=APART_FROM_EACH_OTHER),
}


def next_ids(rng: Random, scheduler: str, number: int) -> tuple[str, ...]:
    """Return the ids of a scheduler's next request."""
    [name] = rng.choices(list(KINDS), [kind.weight for kind in KINDS.values()])
    base = f"{scheduler}-{name}-{number}"
    places = KINDS[name].places
    return (base,) if places == 1 else tuple(f"{base}-{place}" for place in range(places))


def request_of(ids: Sequence[str], made: Sequence[str] = ()) -> Request:
    """Return the request of these ids, equal in every process; `made`: the ids that the server created for it."""
    kind = KINDS[kind_of(ids[0])]
    return Request(
        kind.resources,
        count=1 if kind.members else kind.places,
        members=kind.members,
        relations=kind.relations,
        server_group=kind.server_group,
        alternates=kind.alternates,
        project=kind.project,
        consumer=ids[0] if kind.is_made else "",
        claim_ids=tuple(made if kind.is_made else ids),
        until=kind.until,
        lease_s=LEASE_S,
        max_runtime_s=kind.max_runtime_s,
    )


def kind_of(claim_id: str) -> str:
    """Return the kind of request of an id; '' if the server created the id."""
    return claim_id.split("-")[1] if "-" in claim_id else ""


def stands_with_others(claim_id: str) -> bool:
    """Return whether an id belongs to one of several places."""
    kind = KINDS.get(kind_of(claim_id))
    return kind is not None and kind.places > 1


def placed_with(claim_id: str) -> tuple[str, ...]:
    """Return the ids of the request to which an id belongs, the id itself first."""
    if not stands_with_others(claim_id):
        return (claim_id,)
    base = claim_id.rsplit("-", 1)[0]
    everyone = (f"{base}-{place}" for place in range(KINDS[kind_of(claim_id)].places))
    return claim_id, *(one for one in everyone if one != claim_id)


def is_made(ids: Sequence[str]) -> bool:
    """Return whether a request of this name leaves its ids to the server."""
    return KINDS[kind_of(ids[0])].is_made
