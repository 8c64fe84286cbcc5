"""Nested parts of a selection: groups, guest NUMA, devices, spreading, hints, relations."""

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
    """Resources that must all come from the same pool of the host."""

    name: Name
    resources: Annotated[
        dict[ResourceClass, Need],
        Field(description="Amounts by class. If empty, the group only selects a pool, for `same_subtree`."),
    ] = Field(default_factory=dict)
    required: Annotated[Traits, Field(description="Traits that the pool must have.")] = frozenset()
    forbidden: Annotated[Traits, Field(description="Traits that the pool must not have.")] = frozenset()
    any_of: Annotated[
        tuple[SomeTraits, ...],
        Field(max_length=MAX_PARTS, description="Lists of traits: the pool must have at least one of each list."),
    ] = ()

    def made(self) -> Group:
        """Convert to the model's group. Raises InvalidRequest."""
        return Group(**given(self))


class NumaCellBody(Part):
    """One NUMA node of the guest."""

    cpus: Need
    memory_mb: Need
    dedicated_cpus: Annotated[
        int, whole_from(0), Field(description="How many of `cpus` are dedicated, with policy mixed.")
    ] = 0

    def made(self) -> NumaCell:
        """Convert to the model's NUMA cell. Raises InvalidRequest."""
        return NumaCell(**given(self))


class NumaBody(Part):
    """A guest's NUMA cells, each placed on a different NUMA node of the host."""

    cells: Annotated[tuple[NumaCellBody, ...], Field(min_length=1, max_length=MAX_CELLS)]
    policy: Annotated[
        CpuPolicy, Field(description="Class of the CPUs: VCPU (shared), PCPU (dedicated) or both (mixed).")
    ] = CpuPolicy.SHARED
    page_size_kb: Annotated[
        Annotated[int, whole_from(4, 1 << 30)] | None,
        Field(description="Size of the huge pages to use. null: ordinary memory."),
    ] = None

    def made(self) -> Numa:
        """Convert to the model's guest NUMA. Raises InvalidRequest."""
        return Numa(**given(self))


class PciBody(Part):
    """Devices of one class. Each may come from any pool of the host that has the class."""

    resource_class: Annotated[ResourceClass, Field(alias="class")]
    count: Annotated[int, whole_from(1, MAX_DEVICES)] = 1
    numa_policy: Annotated[
        NumaAffinity, Field(description="How close the devices must be to the guest's NUMA cells.")
    ] = NumaAffinity.LEGACY
    required: Annotated[Traits, Field(description="Traits that the device's pool must have.")] = frozenset()

    def made(self) -> PciDevices:
        """Convert to the model's devices. Raises InvalidRequest."""
        return PciDevices(**given(self))


class SpreadBody(Part):
    """An even spread: the numbers of places in any two zones, label values or hosts differ by at most `max_skew`."""

    by: Annotated[Topology, Field(description="What to spread over: host, zone or label:<key>.")]
    max_skew: Annotated[int, whole_from(1, MAX_SKEW)] = 1
    hard: Annotated[bool, Field(description="Whether it is required. false: a preference.")] = True

    def made(self) -> Spread:
        """Convert to the model's spreading. Raises InvalidRequest."""
        return Spread(**given(self))


class HintsBody(Part):
    """Placement relative to other work."""

    same_host: Annotated[NameOrNames, Field(description="Use only the hosts of these claims.")] = frozenset()
    different_host: Annotated[NameOrNames, Field(description="Use none of the hosts of these claims.")] = frozenset()
    build_near_host_ip: Annotated[
        str, Field(description="Use only hosts whose label `ip` is in the network of this address.")
    ] = ""
    cidr: Annotated[str, Field(description="Prefix length of that network, by default /24.", examples=["/24"])] = ""

    def made(self) -> Hints:
        """Convert to the model's hints. Raises InvalidRequest."""
        return Hints(**given(self))


class RelationBody(Part):
    """A relation between gang members: what their places must or must not share."""

    type: RelationType
    members: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_COUNT)]

    def made(self) -> Relation:
        """Convert to the model's relation. Raises InvalidRequest."""
        return Relation(**given(self))
