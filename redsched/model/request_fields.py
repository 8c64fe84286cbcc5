"""The fields of a request that describe its places and the call, without the members of a gang.

The REST API uses their types and descriptions too: JSON is read into these fields, `zones` from `zone`.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from redsched.model.claims import GangOnExit, OnExit
from redsched.model.constraints import Group, Hints, Numa, PciDevices, Relation, Spread
from redsched.model.json_codec import CustomJson
from redsched.model.limits import (
    MAX_ALTERNATES,
    MAX_ATTEMPTS,
    MAX_CLASSES,
    MAX_CONDITIONS,
    MAX_COUNT,
    MAX_PARTS,
    MAX_RUNTIME_S,
    MAX_WAIT_S,
    MAX_WEIGHTS,
)
from redsched.model.lists import Hosts, NameOrLists, NameOrNames, Names, Query, SomeTraits, Traits
from redsched.model.record import record
from redsched.model.types import (
    Body,
    Condition,
    LeaseS,
    MetadataKey,
    MetadataValue,
    Name,
    Need,
    OrNull,
    Owner,
    ResourceClass,
    whole_from,
)

QUEUE_TIMEOUT = "Seconds to wait for room if nothing fits."
_NO_HINTS = Hints()
Multiplier = Annotated[float, WithJsonSchema({"type": "number", "minimum": -1e6, "maximum": 1e6})]


@record
class PlaceFields(CustomJson, Body):
    """The requirements of each place: amounts, and where they may be allocated."""

    resources: Annotated[
        Mapping[ResourceClass, Need],
        Field(max_length=MAX_CLASSES, description="Amounts by class, each from any pool of the host."),
    ] = field(default_factory=dict)
    groups: Annotated[
        tuple[Group, ...],
        Field(
            max_length=MAX_PARTS, fail_fast=True, description="Groups of amounts, each allocated from a single pool."
        ),
    ] = ()
    group_policy: Annotated[
        Literal["none", "isolate"], Field(description="isolate: groups use different pools. none: they may share one.")
    ] = "none"
    same_subtree: Annotated[
        tuple[Names, ...],
        Field(
            max_length=MAX_PARTS,
            fail_fast=True,
            description="Lists of groups: one group's pool must be, or contain, the pools of the others in its list.",
        ),
    ] = ()
    required: Annotated[Traits, Field(description="Traits that the host must have.")] = frozenset()
    forbidden: Annotated[Traits, Field(description="Traits that the host must not have.")] = frozenset()
    any_of: Annotated[
        tuple[SomeTraits, ...],
        Field(
            max_length=MAX_PARTS,
            fail_fast=True,
            description="Lists of traits: the host must have at least one of each list.",
        ),
    ] = ()
    root_required: Annotated[
        Traits, Field(description="Traits that the host itself must have, not just one of its pools.")
    ] = frozenset()
    root_forbidden: Annotated[Traits, Field(description="Traits that the host itself must not have.")] = frozenset()
    zones: Annotated[NameOrNames, Field(alias="zone", description="One zone, or a list of acceptable zones.")] = (
        frozenset()
    )
    member_of: Annotated[
        NameOrLists,
        Field(description="One aggregate; a list, of which one suffices; or several lists, one of each."),
    ] = ()
    not_member_of: Annotated[
        NameOrNames, Field(description="One aggregate or a list: the host must be in none of them.")
    ] = frozenset()
    hosts: Annotated[Hosts, Field(description="Use only these hosts. Empty: any host.")] = frozenset()
    exclude_hosts: Annotated[Hosts, Field(description="Do not use these hosts.")] = frozenset()
    labels: Annotated[
        Mapping[Name, Condition],
        Field(
            max_length=MAX_CONDITIONS,
            description="Labels that the host must have: a value, or an operator with its operands.",
        ),
    ] = field(default_factory=dict)
    aggregate_metadata: Annotated[
        Mapping[MetadataKey, MetadataValue],
        Field(max_length=MAX_CONDITIONS, description="Metadata that one of the host's aggregates must have."),
    ] = field(default_factory=dict)
    properties: Annotated[
        Mapping[MetadataKey, MetadataValue],
        Field(max_length=MAX_CONDITIONS, description="Properties of the work, which aggregates may restrict."),
    ] = field(default_factory=dict)
    """They are not of a host: an image's os_type, a flavour's name."""
    query: Annotated[
        Query,
        Field(
            description="A query in the syntax of Nova's JsonFilter, as a list.",
            examples=[[">=", "$free.MEMORY_MB", 1024]],
        ),
    ] = ()
    """Nested tuples of strings and numbers; () for none."""
    server_group: Annotated[Name | Literal[""], Field(description="The server group that the claim joins.")] = ""
    spread: Annotated[
        tuple[Spread, ...],
        Field(
            max_length=MAX_PARTS,
            fail_fast=True,
            description="Spread the places evenly over zones, label values or hosts.",
        ),
    ] = ()
    numa: Annotated[Numa | None, Field(description="The guest's NUMA cells.")] = None
    pci: Annotated[tuple[PciDevices, ...], Field(max_length=MAX_PARTS, fail_fast=True, description="PCI devices.")] = ()
    hints: Annotated[
        Hints, OrNull(_NO_HINTS), Field(description="Placement relative to other claims or to an address.")
    ] = _NO_HINTS
    count: Annotated[int, whole_from(1, MAX_COUNT), Field(description="Number of identical places.")] = 1


@record
class RequestFields(PlaceFields):
    """The fields of a request, with their defaults."""

    relations: Annotated[
        tuple[Relation, ...],
        Field(max_length=MAX_PARTS, fail_fast=True, description="Relations between the places of gang members."),
    ] = ()
    mode: Annotated[
        Literal["all", "incremental"], Field(description="all: all places or none. incremental: as many as fit.")
    ] = "all"
    policy: Annotated[Name | Literal[""], Field(description="A weighing policy, such as spread or pack.")] = ""
    weights: Annotated[
        Mapping[str, Multiplier],
        Field(max_length=MAX_WEIGHTS, description="Multipliers by weigher. They override those of the policy."),
    ] = field(default_factory=dict)
    alternates: Annotated[
        int,
        whole_from(0, MAX_ALTERNATES),
        Field(description="Number of further hosts to return that fit. They are not claimed."),
    ] = 0
    project: Annotated[
        Name | Literal[""], Field(description="The project that the claims belong to. Quotas apply to projects.")
    ] = ""
    owner: Annotated[
        Owner | Literal[""],
        Field(description="Who in the project owns the claims. Default: the caller. Only operators may name another."),
    ] = ""
    consumer: Annotated[
        Name | Literal[""], Field(description="The purpose of the claims, in the terms of their owner.")
    ] = ""
    claim_ids: Annotated[
        tuple[Name, ...],
        Field(
            max_length=MAX_COUNT, fail_fast=True, description="One id for each place, in order. Generated if omitted."
        ),
    ] = ()
    lease_s: Annotated[LeaseS, Field(description="Seconds within which a host must accept the claim.")] = 120
    until: Annotated[
        Literal["claimed", "active"],
        Field(description="active: respond when the hosts have confirmed, or undo the request."),
    ] = "claimed"
    queue_timeout_s: Annotated[int, whole_from(0, MAX_WAIT_S), Field(description=QUEUE_TIMEOUT)] = 0
    reserve: Annotated[
        bool,
        Field(description="Whether a host is reserved while it waits for room, so that it gets what becomes free."),
    ] = False
    confirm_timeout_s: Annotated[
        int,
        whole_from(0, MAX_WAIT_S),
        Field(description="Seconds that `until: active` waits over all attempts. 0: lease_s for each attempt."),
    ] = 0
    on_exit: Annotated[
        OnExit,
        Field(description="What happens to a claim when the work that a hook named ends by itself."),
    ] = OnExit.RELEASE
    gang_on_exit: Annotated[
        GangOnExit,
        Field(description="What happens to the other members of an active gang when one ends by itself."),
    ] = GangOnExit.KEEP
    max_attempts: Annotated[
        int,
        whole_from(1, MAX_ATTEMPTS),
        Field(description="Number of placements after which a claim fails, counted since it was last active."),
    ] = 3
    """A gang has one attempt."""
    max_runtime_s: Annotated[
        int,
        whole_from(0, MAX_RUNTIME_S),
        Field(description="Seconds from the claim until its host stops the work, whatever its state. 0: no limit."),
    ] = 0
    payload: Annotated[
        object,
        Field(description="Any JSON value for the hooks of the work, up to 16 KiB. redsched does not look into it."),
    ] = None
    claim: Annotated[bool, Field(description="false: a dry run that writes nothing.")] = True
