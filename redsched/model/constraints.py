"""The compound parts of a request: groups, guest NUMA, devices, spreading, hints, gang relations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address, ip_network
from typing import Annotated

from pydantic import Field

from redsched.errors import InvalidRequest
from redsched.model.limits import MAX_CLASSES, MAX_COUNT, MAX_PARTS, check_any_of, check_range, check_size
from redsched.model.lists import NameOrNames, SomeTraits, Traits
from redsched.model.types import Name, Need, ResourceClass, Topology, whole_from
from redsched.model.validation import check_amount, check_class, check_name, check_topology, check_trait

MAX_CELLS = 16
MAX_DEVICES = 64
MAX_SKEW = 1_000_000
MAX_PAGE_KB = 1 << 30
ORDINARY_PAGE_KB = 4
"""The size of pages that are no huge pages. A guest that names it takes MEMORY_MB."""


@dataclass(frozen=True, slots=True)
class Group:
    """Resources that must all come from one pool. Without resources it only selects a pool, for same_subtree."""

    name: Name
    resources: Annotated[
        Mapping[ResourceClass, Need],
        Field(description="Amounts by class. If empty, the group only selects a pool, for `same_subtree`."),
    ] = field(default_factory=dict)
    required: Annotated[Traits, Field(description="Traits that the pool must have.")] = frozenset()
    forbidden: Annotated[Traits, Field(description="Traits that the pool must not have.")] = frozenset()
    any_of: Annotated[
        tuple[SomeTraits, ...],
        Field(
            max_length=MAX_PARTS,
            fail_fast=True,
            description="Lists of traits: the pool must have at least one of each list.",
        ),
    ] = ()

    def __post_init__(self) -> None:
        check_name("group", self.name)
        check_size(f"resources of group {self.name}", self.resources, MAX_CLASSES)
        check_any_of(self.any_of)
        for resource_class, amount in self.resources.items():
            check_amount(check_class(resource_class), amount, 1)
        for trait in self.required | self.forbidden:
            check_trait(trait)


class CpuPolicy(StrEnum):
    """Which CPUs a guest's cells get: VCPU, PCPU, or some of each."""

    SHARED = "shared"
    DEDICATED = "dedicated"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class NumaCell:
    """One NUMA node of the guest. Under the mixed policy, `dedicated_cpus` of its `cpus` are PCPU."""

    cpus: Need
    memory_mb: Need
    dedicated_cpus: Annotated[
        int, whole_from(0), Field(description="How many of `cpus` are dedicated, with policy mixed.")
    ] = 0

    def __post_init__(self) -> None:
        check_amount("cpus of a NUMA cell", self.cpus, 1)
        check_amount("memory_mb of a NUMA cell", self.memory_mb, 1)
        check_range("dedicated_cpus of a NUMA cell", self.dedicated_cpus, 0, self.cpus)


@dataclass(frozen=True, slots=True)
class Numa:
    """A guest's NUMA cells. Each lies in a NUMA node of the host, no two in the same one.

    With `page_size_kb`, memory comes as whole huge pages of class CUSTOM_HUGE_PAGES_<size>KB; with 4, as MEMORY_MB.
    """

    cells: Annotated[tuple[NumaCell, ...], Field(min_length=1, max_length=MAX_CELLS, fail_fast=True)]
    policy: Annotated[
        CpuPolicy, Field(description="Class of the CPUs: VCPU (shared), PCPU (dedicated) or both (mixed).")
    ] = CpuPolicy.SHARED
    page_size_kb: Annotated[
        Annotated[int, whole_from(4, MAX_PAGE_KB)] | None,
        Field(description="Size of the huge pages to use. null: ordinary memory; 4: the same, not overcommitted."),
    ] = None

    def __post_init__(self) -> None:
        if not self.cells:
            raise InvalidRequest("numa has no cells: give at least one")
        check_size("numa cells", self.cells, MAX_CELLS)
        if self.page_size_kb is not None:
            check_range("page_size_kb", self.page_size_kb, 4, MAX_PAGE_KB)
        for cell in self.cells:
            if cell.dedicated_cpus and self.policy is not CpuPolicy.MIXED:
                raise InvalidRequest(f"dedicated_cpus requires the policy mixed, not {self.policy}")
            if self.page_size_kb is not None and cell.memory_mb * 1024 % self.page_size_kb:
                raise InvalidRequest(
                    f"memory_mb {cell.memory_mb} is not a multiple of the page size, {self.page_size_kb} KB"
                )

    @property
    def has_huge_pages(self) -> bool:
        """Whether memory comes as huge pages."""
        return self.page_size_kb not in (None, ORDINARY_PAGE_KB)

    @property
    def is_memory_real(self) -> bool:
        """Whether cells take MEMORY_MB that must be free without the allocation ratio, as in Nova."""
        return not self.has_huge_pages and (self.policy is not CpuPolicy.SHARED or self.page_size_kb is not None)


class NumaAffinity(StrEnum):
    """How close a device must be to the guest's NUMA cells, as in Nova. `legacy` accepts devices without a node.

    `socket` accepts devices in any node of a socket that holds a cell: nodes of one socket have the same
    CUSTOM_SOCKET_<n>.
    """

    REQUIRED = "required"
    SOCKET = "socket"
    PREFERRED = "preferred"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class PciDevices:
    """`count` devices of a class, each from any pool that has the class."""

    resource_class: Annotated[ResourceClass, Field(alias="class")]
    count: Annotated[int, whole_from(1, MAX_DEVICES)] = 1
    numa_policy: Annotated[
        NumaAffinity, Field(description="How close the devices must be to the guest's NUMA cells.")
    ] = NumaAffinity.LEGACY
    required: Annotated[Traits, Field(description="Traits that the device's pool must have.")] = frozenset()

    def __post_init__(self) -> None:
        check_class(self.resource_class)
        check_range("count of pci", self.count, 1, MAX_DEVICES)
        for trait in self.required:
            check_trait(trait)


@dataclass(frozen=True, slots=True)
class Spread:
    """Spreads places over zones, label values or hosts: the counts of any two of them differ by at most `max_skew`.

    Counts the members of the request's server group; without one, the places of the request itself.
    """

    by: Annotated[Topology, Field(description="What to spread over: host, zone or label:<key>.")]
    max_skew: Annotated[int, whole_from(1, MAX_SKEW)] = 1
    hard: Annotated[bool, Field(description="Whether it is required. false: a preference.")] = True

    def __post_init__(self) -> None:
        check_topology(self.by)
        check_range("max_skew", self.max_skew, 1, MAX_SKEW)


@dataclass(frozen=True, slots=True)
class Hints:
    """Placement relative to other claims and to an address. `same_host` and `different_host` name claims.

    The address is compared with a host's label `ip`.
    """

    same_host: Annotated[NameOrNames, Field(description="Use only the hosts of these claims.")] = frozenset()
    different_host: Annotated[NameOrNames, Field(description="Use none of the hosts of these claims.")] = frozenset()
    build_near_host_ip: Annotated[
        str, Field(description="Use only hosts whose label `ip` is in the network of this address.")
    ] = ""
    cidr: Annotated[str, Field(description="Prefix length of that network, by default /24.", examples=["/24"])] = ""

    def __post_init__(self) -> None:
        for claim_id in self.same_host | self.different_host:
            check_name("claim id", claim_id)
        if self.cidr and not self.build_near_host_ip:
            raise InvalidRequest("cidr requires build_near_host_ip: add it, or remove cidr")
        if self.build_near_host_ip:
            self._check_network()

    def _check_network(self) -> None:
        try:
            ip_address(self.build_near_host_ip)
        except ValueError:
            raise InvalidRequest(f"build_near_host_ip {self.build_near_host_ip!r} is not an IP address") from None
        try:
            ip_network(self.network(), strict=False)
        except ValueError:
            raise InvalidRequest(
                f"cidr {self.cidr!r} is not a prefix length of that address: use one such as /24"
            ) from None

    def network(self) -> str:
        """Return the network around the address, such as `10.0.0.5/24`. The default length is /24, as in Nova."""
        return f"{self.build_near_host_ip}/{(self.cidr or '/24').lstrip('/')}"


class RelationType(StrEnum):
    """What the places of a gang's members must or must not share."""

    TOGETHER = "together"
    APART = "apart"
    SAME_ZONE = "same-zone"
    SAME_AGGREGATE = "same-aggregate"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between every two places of the named members, including two places of the same member."""

    type: RelationType
    members: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_COUNT, fail_fast=True)]

    def __post_init__(self) -> None:
        if not self.members:
            raise InvalidRequest(f"a relation {self.type} names no members: name at least one")
        check_size("members of a relation", self.members, MAX_COUNT)
