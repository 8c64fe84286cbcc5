"""Parts of a selection that have parts of their own: groups, guest NUMA, devices, spreading, hints, relations."""

from typing import Annotated

from pydantic import Field

from redsched.model import (
    CpuPolicy,
    Group,
    Hints,
    Numa,
    NumaAffinity,
    NumaCell,
    PciDevices,
    Relation,
    RelationType,
    Spread,
)
from redsched.model.constraints import MAX_CELLS, MAX_DEVICES, MAX_SKEW
from redsched.model.limits import MAX_PARTS
from redsched.model.request_validation import MAX_COUNT
from redsched.schema.requests.converting import Part, given
from redsched.schema.requests.lists import NameOrNames, SomeTraits, Traits
from redsched.schema.types import Name, Need, ResourceClass, Topology, whole_from


class GroupBody(Part):
    """Resources that one pool of the host gives all of."""

    name: Name
    resources: Annotated[
        dict[ResourceClass, Need], Field(description="Empty: only chooses a pool, for same_subtree.")
    ] = Field(default_factory=dict)
    required: Annotated[Traits, Field(description="Traits the pool must have.")] = frozenset()
    forbidden: Annotated[Traits, Field(description="Traits the pool must not have.")] = frozenset()
    any_of: Annotated[
        tuple[SomeTraits, ...],
        Field(max_length=MAX_PARTS, description="Of each list, the pool must have one trait."),
    ] = ()

    def made(self) -> Group:
        """The group. Raises InvalidRequest."""
        return Group(**given(self))


class NumaCellBody(Part):
    """One NUMA node of the guest."""

    cpus: Need
    memory_mb: Need
    dedicated_cpus: Annotated[int, whole_from(0), Field(description="Of `cpus`, under the mixed policy.")] = 0

    def made(self) -> NumaCell:
        """The cell. Raises InvalidRequest."""
        return NumaCell(**given(self))


class NumaBody(Part):
    """A guest's NUMA cells, each in a NUMA node of the host, no two in the same."""

    cells: Annotated[tuple[NumaCellBody, ...], Field(min_length=1, max_length=MAX_CELLS)]
    policy: Annotated[CpuPolicy, Field(description="CPUs from VCPU, from PCPU, or from both.")] = CpuPolicy.SHARED
    page_size_kb: Annotated[
        Annotated[int, whole_from(4, 1 << 30)] | None, Field(description="Huge pages of this size. null: any memory.")
    ] = None

    def made(self) -> Numa:
        """The guest's NUMA. Raises InvalidRequest."""
        return Numa(**given(self))


class PciBody(Part):
    """Devices of a class, each from any pool of the host that has it."""

    resource_class: Annotated[ResourceClass, Field(alias="class")]
    count: Annotated[int, whole_from(1, MAX_DEVICES)] = 1
    numa_policy: Annotated[NumaAffinity, Field(description="How near to the guest's NUMA cells.")] = NumaAffinity.LEGACY
    required: Annotated[Traits, Field(description="Traits the device's pool must have.")] = frozenset()

    def made(self) -> PciDevices:
        """The devices. Raises InvalidRequest."""
        return PciDevices(**given(self))


class SpreadBody(Part):
    """No two of the zones, label values or hosts differ by more than `max_skew` places."""

    by: Annotated[Topology, Field(description="host, zone or label:<key>.")]
    max_skew: Annotated[int, whole_from(1, MAX_SKEW)] = 1
    hard: Annotated[bool, Field(description="false: a wish.")] = True

    def made(self) -> Spread:
        """The spreading. Raises InvalidRequest."""
        return Spread(**given(self))


class HintsBody(Part):
    """Where other work is."""

    same_host: Annotated[NameOrNames, Field(description="Claims on whose hosts it must be.")] = frozenset()
    different_host: Annotated[NameOrNames, Field(description="Claims on whose hosts it must not be.")] = frozenset()
    build_near_host_ip: Annotated[str, Field(description="An address in the network of the host's label `ip`.")] = ""
    cidr: Annotated[str, Field(description="How near: /24.", examples=["/24"])] = ""

    def made(self) -> Hints:
        """The hints. Raises InvalidRequest."""
        return Hints(**given(self))


class RelationBody(Part):
    """What places of a gang's members must share, or must not."""

    type: RelationType
    members: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_COUNT)]

    def made(self) -> Relation:
        """The relation. Raises InvalidRequest."""
        return Relation(**given(self))
