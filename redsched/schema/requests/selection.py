"""The body of POST /v1/selections and /v1/explain, and the members of a gang."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from redsched.model import MAX_ALTERNATES, MAX_ATTEMPTS, MAX_COUNT, MAX_WAIT_S, GangMember, OnExit, Request
from redsched.model.limits import MAX_PARTS
from redsched.schema.requests.constraints import GroupBody, HintsBody, NumaBody, PciBody, RelationBody, SpreadBody
from redsched.schema.requests.converting import Part, given
from redsched.schema.requests.lists import NameOrLists, NameOrNames, Names, Query, SomeTraits, Traits
from redsched.schema.types import (
    Condition,
    LeaseS,
    MetadataKey,
    MetadataValue,
    Name,
    Need,
    ResourceClass,
    Strict,
    whole_from,
)

Multiplier = Annotated[float, WithJsonSchema({"type": "number", "minimum": -1e6, "maximum": 1e6})]


class PlaceBody(Strict):
    """The requirements of each place: amounts, and where they may come from."""

    resources: Annotated[
        dict[ResourceClass, Need], Field(description="Amounts by class, each from any pool of the host.")
    ] = Field(default_factory=dict)
    groups: Annotated[
        tuple[GroupBody, ...], Field(max_length=MAX_PARTS, description="Amounts that one pool gives all of.")
    ] = ()
    group_policy: Annotated[
        Literal["none", "isolate"], Field(description="isolate: no two groups from the same pool.")
    ] = "none"
    same_subtree: Annotated[
        tuple[Names, ...],
        Field(
            max_length=MAX_PARTS, description="Lists of groups: the pool of one is, or is above, those of the others."
        ),
    ] = ()
    required: Annotated[Traits, Field(description="Traits the host must have.")] = frozenset()
    forbidden: Annotated[Traits, Field(description="Traits the host must not have.")] = frozenset()
    any_of: Annotated[
        tuple[SomeTraits, ...],
        Field(max_length=MAX_PARTS, description="Of each list, the host must have one trait."),
    ] = ()
    root_required: Annotated[Traits, Field(description="Traits the host itself must have, not a pool.")] = frozenset()
    root_forbidden: Annotated[Traits, Field(description="Traits the host itself must not have.")] = frozenset()
    zone: Annotated[NameOrNames, Field(description="One zone, or a list of which any will do.")] = frozenset()
    member_of: Annotated[
        NameOrLists,
        Field(description="One aggregate, a list of which any will do, or lists: one of each."),
    ] = ()
    not_member_of: Annotated[NameOrNames, Field(description="In none of these aggregates.")] = frozenset()
    hosts: Annotated[Names, Field(description="Only these hosts. Empty: any.")] = frozenset()
    exclude_hosts: Annotated[Names, Field(description="Not these hosts.")] = frozenset()
    labels: Annotated[
        dict[Name, Condition], Field(description="Labels the host must have: a value, or an operator with its words.")
    ] = Field(default_factory=dict)
    aggregate_metadata: Annotated[
        dict[MetadataKey, MetadataValue], Field(description="Metadata that an aggregate of the host must have.")
    ] = Field(default_factory=dict)
    properties: Annotated[
        dict[MetadataKey, MetadataValue], Field(description="What the work is, for aggregates to match.")
    ] = Field(default_factory=dict)
    query: Annotated[
        Query, Field(description="Nova's JsonFilter, as a list.", examples=[[">=", "$free.MEMORY_MB", 1024]])
    ] = ()
    server_group: Annotated[Name | Literal[""], Field(description="The server group that it becomes a member of.")] = ""
    spread: Annotated[
        tuple[SpreadBody, ...], Field(max_length=MAX_PARTS, description="Over zones, label values or hosts.")
    ] = ()
    numa: Annotated[NumaBody | None, Field(description="The guest's NUMA cells.")] = None
    pci: Annotated[tuple[PciBody, ...], Field(max_length=MAX_PARTS, description="Devices.")] = ()
    hints: Annotated[HintsBody | None, Field(description="Where other work is.")] = None
    count: Annotated[int, whole_from(1, MAX_COUNT), Field(description="Places, all alike.")] = 1

    def _given(self) -> dict[str, Any]:
        words = given(self)
        if "zone" in words:
            words["zones"] = words.pop("zone")
        return words


class MemberBody(PlaceBody, Part):
    """One kind of member of a gang."""

    name: Annotated[Name, Field(description="What its selections show as `member`.")]

    def made(self) -> GangMember:
        """Convert to the model's member. Raises InvalidRequest."""
        words = self._given()
        return GangMember(words.pop("name"), Request(**words))


class SelectionRequest(PlaceBody):
    """A request for places. At least one of `resources`, `groups`, `numa`, `pci` and `members` is required."""

    members: Annotated[
        tuple[MemberBody, ...], Field(max_length=MAX_COUNT, description="A gang: what each kind of member asks for.")
    ] = ()
    relations: Annotated[
        tuple[RelationBody, ...], Field(max_length=MAX_PARTS, description="How the members lie to each other.")
    ] = ()
    mode: Annotated[Literal["all", "incremental"], Field(description="All places or none; or as many as fit.")] = "all"
    policy: Annotated[Name | Literal[""], Field(description="A weighing policy, such as spread or pack.")] = ""
    weights: Annotated[dict[str, Multiplier], Field(description="Multipliers by weigher.")] = Field(
        default_factory=dict
    )
    alternates: Annotated[
        int, whole_from(0, MAX_ALTERNATES), Field(description="Further hosts that fit, unclaimed.")
    ] = 0
    project: Annotated[Name | Literal[""], Field(description="Whose it is.")] = ""
    consumer: Annotated[Name | Literal[""], Field(description="What it is for.")] = ""
    claim_ids: Annotated[
        tuple[Name, ...], Field(max_length=MAX_COUNT, description="One id for each place, in order. Absent: made here.")
    ] = ()
    lease_s: Annotated[LeaseS, Field(description="Seconds in which a host has to take the claim up.")] = 120
    until: Annotated[
        Literal["claimed", "active"], Field(description="active: answer when the hosts have confirmed, or undo it.")
    ] = "claimed"
    queue_timeout_s: Annotated[
        int, whole_from(0, MAX_WAIT_S), Field(description="Seconds to wait for room where nothing fits.")
    ] = 0
    confirm_timeout_s: Annotated[
        int,
        whole_from(0, MAX_WAIT_S),
        Field(description="Seconds that until: active waits, over all attempts. 0: lease_s for each of them."),
    ] = 0
    on_exit: Annotated[
        OnExit,
        Field(description="When the work that a hook named ends by itself: end the claim, place it again, keep."),
    ] = OnExit.RELEASE
    max_attempts: Annotated[
        int,
        whole_from(1, MAX_ATTEMPTS),
        Field(description="Hosts tried before a claim has failed, counted from when it was active last."),
    ] = 3
    claim: Annotated[bool, Field(description="false: a dry run, which writes nothing.")] = True

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"resources": {"VCPU": 2, "MEMORY_MB": 4096}, "alternates": 2}]}
    )

    def request(self) -> Request:
        """Convert to the model's request. Raises InvalidRequest."""
        return Request(**self._given())
