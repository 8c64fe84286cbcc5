"""What hosts report about themselves: inventories, pools, reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from redsched.errors import InvalidRequest
from redsched.model.limits import MAX_CLASSES, MAX_HOST_SLOTS, MAX_TRAITS, check_lease, check_size
from redsched.model.lists import Traits
from redsched.model.types import Amount, Body, Device, FromPath, LabelValue, LeaseS, Name, Need, ResourceClass, Slot
from redsched.model.validation import (
    MAX_AMOUNT,
    check_amount,
    check_class,
    check_device,
    check_label_value,
    check_name,
    check_trait,
)

MAX_RATIO = 10_000.0
MAX_LABELS = 256
MAX_LABEL_TEXT = 16_384
"""The most characters of all values of a host's labels together."""
"""The most labels, and the most metrics, of one host."""
MAX_POOLS = 256
"""The most pools of one host."""

NUMA_NODE = "HW_NUMA_ROOT"
SOCKET = "CUSTOM_SOCKET_"
"""The beginning of the trait that all NUMA nodes of a CPU socket share: `CUSTOM_SOCKET_0`."""
"""The trait that os-traits has for pools that are NUMA nodes. Pools named `numa<number>` get it automatically."""


class HostStatus(StrEnum):
    """The status that an operator set for a host. Only an enabled host gets new claims."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    DRAINING = "draining"


class ListedStatus(StrEnum):
    """The statuses by which hosts can be listed. A host that was written off is only lost, until it returns.

    A host whose lease has run out is down, and has one of the first three statuses as well.
    """

    ENABLED = "enabled"
    DISABLED = "disabled"
    DRAINING = "draining"
    LOST = "lost"
    DOWN = "down"


class HostCondition(StrEnum):
    """A host in one word: UP if it takes claims, else what keeps it from that. The most urgent comes first."""

    DOWN = "down"
    """Its lease has run out: nothing is heard of it."""
    UNATTESTED = "unattested"
    """It has not attested to the present epoch."""
    LOST = "lost"
    """It was written off, and has not returned."""
    DRAINING = "draining"
    DISABLED = "disabled"
    UP = "up"


def condition_of(status: HostStatus, alive: bool, attested: bool, written_off: bool) -> HostCondition:
    """Return a host in one word. fleet.js of the dashboard has the same for hosts that it follows in the feed."""
    if written_off:
        return HostCondition.LOST
    if not alive:
        return HostCondition.DOWN
    if not attested:
        return HostCondition.UNATTESTED
    return HostCondition.UP if status is HostStatus.ENABLED else HostCondition(status.value)


class AtDeadline(StrEnum):
    """What happens to the claims still on a drained host when the drain's deadline passes."""

    STOP = "stop"
    """Release them."""
    KEEP = "keep"
    """Keep them there, and move nothing more."""


Ratio = Annotated[float, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MAX_RATIO})]


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of a slot.

    capacity = floor((total - reserved) * allocation_ratio), at least 0 (Placement's formula).
    """

    total: Amount
    reserved: Amount = 0
    allocation_ratio: Ratio = 1.0
    min_unit: Need = 1
    max_unit: Need | None = None
    step_size: Need = 1

    def __post_init__(self) -> None:
        check_amount("total", self.total)
        check_amount("reserved", self.reserved)
        check_amount("min_unit", self.min_unit, 1)
        check_amount("step_size", self.step_size, 1)
        if self.max_unit is not None:
            check_amount("max_unit", self.max_unit, 1)
        if not 0 < self.allocation_ratio <= MAX_RATIO:
            raise InvalidRequest(
                f"allocation_ratio must be above 0 and at most {MAX_RATIO:g}, not {self.allocation_ratio!r}"
            )
        if self.capacity > MAX_AMOUNT:
            raise InvalidRequest(
                f"total x allocation_ratio is {self.capacity}, above the largest amount {MAX_AMOUNT}: lower one of them"
            )

    @property
    def capacity(self) -> int:
        """The amount that claims and external usage may take together."""
        exact = Decimal(max(0, self.total - self.reserved)) * Decimal(str(self.allocation_ratio))
        return int(exact.to_integral_value(ROUND_FLOOR))

    @property
    def largest(self) -> int:
        """The largest amount that one claim may take: max_unit, else total."""
        return self.total if self.max_unit is None else self.max_unit

    @property
    def unusable(self) -> str:
        """Why no amount can ever be claimed although there is something; '' if one can, or if all is reserved."""
        if not self.total or self.reserved == self.total:
            return ""
        if self.reserved > self.total:
            return f"reserved {self.reserved} is above total {self.total}"
        if not self.capacity:
            return f"allocation_ratio {self.allocation_ratio:g} of {self.total - self.reserved} is less than 1"
        if self.max_unit is not None and self.min_unit > self.max_unit:
            return f"min_unit {self.min_unit} is above max_unit {self.max_unit}"
        smallest = -(-self.min_unit // self.step_size) * self.step_size
        if smallest <= min(self.largest, self.capacity):
            return ""
        most = f"the {self.capacity} that there are" if smallest > self.capacity else f"max_unit {self.largest}"
        return f"the smallest amount by min_unit and step_size, {smallest}, is above {most}"


def warnings_of(inventories: Mapping[str, Inventory]) -> tuple[str, ...]:
    """Return for each slot of which nothing can ever be claimed why: `VCPU: reserved 9 is above total 8`."""
    return tuple(f"{slot}: {one.unusable}" for slot, one in inventories.items() if one.unusable)


def check_provided(inventories: Mapping[str, Inventory], traits: frozenset[str]) -> None:
    """Raise InvalidRequest unless a host, pool or shared pool may have these inventories and traits."""
    check_size("inventories", inventories, MAX_CLASSES)
    check_size("traits", traits, MAX_TRAITS)
    for resource_class in inventories:
        check_class(resource_class)
    for trait in traits:
        check_trait(trait)


@dataclass(frozen=True, slots=True)
class Pool:
    """A part of a host that amounts are taken from: a NUMA node, a GPU, a group of identical devices.

    `parent` is the pool that contains it; '' for the host itself. `device` identifies the device that the pool is,
    whatever number it has now; '' for pools of several, or of none.
    """

    inventories: Annotated[
        Mapping[ResourceClass, Inventory], Field(description="Inventories of the pool by class.")
    ] = field(default_factory=dict)
    parent: Annotated[Name | Literal[""], Field(description="The parent pool. Empty: the host itself.")] = ""
    traits: Traits = frozenset()
    device: Annotated[
        Device | Literal[""], Field(description="The device that the pool is: its UUID, or PCI address. Empty: none.")
    ] = ""

    def __post_init__(self) -> None:
        check_provided(self.inventories, self.traits)
        if self.device:
            check_device(self.device)


@dataclass(frozen=True, slots=True)
class HostReport(Body):
    """A host's report of all it has. `external` is the usage by slot that belongs to no claim."""

    name: Annotated[str, FromPath()]
    inventories: Annotated[
        Mapping[ResourceClass, Inventory], Field(description="Inventories of the host itself by class.")
    ]
    cell: Name = "c1"
    zone: Name = "default"
    labels: Mapping[Name, LabelValue] = field(default_factory=dict)
    traits: Traits = frozenset()
    metrics: Mapping[Name, float] = field(default_factory=dict)
    external: Annotated[Mapping[Slot, Amount], Field(description="Usage by slot that belongs to no claim.")] = field(
        default_factory=dict
    )
    lease_s: LeaseS = 30
    pools: Annotated[Mapping[Name, Pool], Field(max_length=MAX_POOLS, description="The host's pools, by name.")] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        for what in ("name", "cell", "zone"):
            check_name("host" if what == "name" else what, getattr(self, what))
        check_provided(self.inventories, self.traits)
        check_size("labels", self.labels, MAX_LABELS)
        check_size("metrics", self.metrics, MAX_LABELS)
        check_size("pools", self.pools, MAX_POOLS)
        for key, value in self.labels.items():
            check_label_value(check_name("label", key), value)
        if (length := sum(map(len, self.labels.values()))) > MAX_LABEL_TEXT:
            raise InvalidRequest(f"the values of labels have {length} characters together: use up to {MAX_LABEL_TEXT}")
        for key in self.metrics:
            check_name("metric", key)
        self._check_pools()
        slots = self.slots()
        check_size("inventories of the host and its pools", slots, MAX_HOST_SLOTS)
        for slot, amount in self.external.items():
            if slot not in slots:
                raise InvalidRequest(f"external has {slot!r}, which has no inventory: add one, or leave it out")
            check_amount(f"external {slot}", amount)
        check_lease(self.lease_s)

    def _check_pools(self) -> None:
        by_device = dict[str, str]()
        for name, pool in self.pools.items():
            check_name("pool", name)
            if pool.device and (other := by_device.setdefault(pool.device, name)) != name:
                raise InvalidRequest(f"pools {other!r} and {name!r} are both device {pool.device!r}: name it in one")
            if pool.parent and pool.parent not in self.pools:
                raise InvalidRequest(f"pool {name!r} has the parent {pool.parent!r}, which is not a pool of this host")
            above, seen = pool.parent, {name}
            while above:
                if above in seen:
                    raise InvalidRequest(f"pool {name!r} is its own ancestor: parents must form a tree")
                seen.add(above)
                above = self.pools[above].parent

    def slots(self) -> dict[str, Inventory]:
        """Return every inventory of the host by slot: the root's by class, a pool's as `gpu0/CUSTOM_GPU_MILLI`."""
        found = dict(self.inventories)
        for name, pool in self.pools.items():
            found.update((f"{name}/{one}", inventory) for one, inventory in pool.inventories.items())
        return found


@dataclass(frozen=True, slots=True)
class AgentStamp:
    """The sender of a report and the report's order: the journal's id, the process' nonce, a counter.

    `version` is the release of the agent, '' if it does not tell.
    """

    journal: Name
    nonce: Name
    number: Need
    version: Name = ""

    def __post_init__(self) -> None:
        check_name("journal", self.journal)
        check_name("nonce", self.nonce)
        check_amount("number", self.number, 1)
        if self.version:
            check_name("version", self.version)
