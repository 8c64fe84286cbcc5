"""The demand of a request on the places of one host, as parts that one place each must give. Host-independent."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache

from redsched.decide.pools.plan import Plans
from redsched.model import Amounts, CpuPolicy, Group, Numa, NumaAffinity, NumaCell, Request

MAX_DEMANDS = 128
"""The most demands whose plans are shared between requests."""

Demands = tuple[tuple[str, int], ...]
"""(class, amount), sorted by class; the classes are distinct."""


class Sort(IntEnum):
    """The sort of a part, which determines the places that may give it, and the order of placing.

    Devices come after the cells that they must be near, and parts that may lie anywhere come last.
    """

    CELL = 0
    GROUP = 1
    DEVICE = 2
    SPREAD = 3


@dataclass(frozen=True, slots=True)
class Part:
    """Amounts that one place gives together, `count` times: a cell, a group, a device, or a class of `resources`.

    With `apart`, no two units of such parts of the same sort lie in the same place. `affinity` is set if the place of a
    device matters, which requires guest cells. `name` is set if same_subtree names the group. `real_mb` is memory that
    must be free without the allocation ratio.
    """

    sort: Sort
    demands: Demands
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: tuple[frozenset[str], ...] = ()
    apart: bool = False
    affinity: NumaAffinity | None = None
    name: str = ""
    count: int = 1
    real_mb: int = 0

    def traits(self) -> frozenset[str]:
        """Return all traits that it mentions."""
        return self.required.union(self.forbidden, *self.any_of)

    def suits(self, traits: Set[str]) -> bool:
        """Return whether a place with these traits may give it."""
        return self.required <= traits and not self.forbidden & traits and all(one & traits for one in self.any_of)


@dataclass(slots=True)
class PoolDemand:
    """A request prepared for assignment, with the plans cached for it by layout of hosts.

    `own` are amounts that only the roots of hosts give, as rules have tested; they are not among the parts. `wants` are
    sets of traits: at least one of each set must be on the root or on a place that the unnumbered resources come from
    (a required trait is a set of one). `subtrees` are sets of indexes of `parts`.
    """

    resources: Amounts
    parts: tuple[Part, ...]
    wants: tuple[frozenset[str], ...]
    forbidden: frozenset[str]
    subtrees: tuple[frozenset[int], ...]
    is_simple: bool
    """Whether the request has nothing but unnumbered resources."""
    own: Amounts = field(default_factory=dict)
    given_up: int = 0
    """Hosts of this decision whose search was abandoned (`search.STEPS`), which count as not fitting."""
    plans: Plans = field(default_factory=dict)


def needs_of(request: Request, of_root: Collection[str] = ()) -> PoolDemand:
    """Split a request into parts. Equal parts become one with a count, so that no two assignments are equivalent.

    `of_root` are classes of the unnumbered resources that no pool has, and no other part requests.
    """
    related: frozenset[str] = frozenset().union(*request.same_subtree)
    elsewhere = _spread(request, of_root)
    parts = tuple(_counted((*_cells(request.numa), *_groups(request, related), *_devices(request), *elsewhere)))
    places = {part.name: index for index, part in enumerate(parts) if part.name}
    return PoolDemand(
        resources=request.resources,
        parts=parts,
        wants=tuple(dict.fromkeys((*(frozenset((trait,)) for trait in sorted(request.required)), *request.any_of))),
        forbidden=request.forbidden,
        subtrees=tuple(frozenset(places[name] for name in names) for names in request.same_subtree),
        is_simple=not (request.groups or request.numa or request.pci),
        own={name: request.resources[name] for name in of_root},
    )


def shared_caches(needs: PoolDemand) -> PoolDemand:
    """Return the demand with the plans of all demands that differ from it only in `own`: they have equal assignments.

    Not for shared pools, on which plans depend too.
    """
    return replace(needs, plans=_plans_of(needs.parts, needs.wants, needs.forbidden, needs.subtrees))


@lru_cache(MAX_DEMANDS)
def _plans_of(*_parts: Hashable) -> Plans:
    return {}


def alone(request: Request) -> frozenset[str]:
    """Return the classes that only one unit of one part requests, so that nothing else competes for them."""
    if not (request.groups or request.numa or request.pci):
        return frozenset(request.resources)
    units = Counter(request.resources.keys())
    for cell in request.numa.cells if request.numa else ():
        units.update(name for name, _ in cell_demands(request.numa, cell))  # type: ignore[arg-type]  # no cells without
    for group in request.groups:
        units.update(group.resources.keys())
    for devices in request.pci:
        units[devices.resource_class] += devices.count
    return frozenset(name for name, count in units.items() if count == 1)


def cell_demands(numa: Numa, cell: NumaCell) -> Demands:
    """Return what a guest's cell takes from its NUMA node: CPUs by the policy, memory or whole pages of one size."""
    dedicated = cell.cpus if numa.policy is CpuPolicy.DEDICATED else cell.dedicated_cpus
    memory = {"MEMORY_MB": cell.memory_mb}
    if numa.has_huge_pages:
        size = numa.page_size_kb or 1
        memory = {f"CUSTOM_HUGE_PAGES_{size}KB": cell.memory_mb * 1024 // size}
    return _demands({"PCPU": dedicated, "VCPU": cell.cpus - dedicated} | memory)


def _demands(amounts: Amounts) -> Demands:
    return tuple((name, amount) for name, amount in sorted(amounts.items()) if amount)


def _cells(numa: Numa | None) -> Iterator[Part]:
    if numa is None:
        return
    for cell in numa.cells:
        real_mb = cell.memory_mb if numa.is_memory_real else 0
        yield Part(Sort.CELL, cell_demands(numa, cell), apart=True, real_mb=real_mb)


def _groups(request: Request, related: frozenset[str]) -> Iterator[Part]:
    for group in request.groups:
        yield _group(group, request.group_policy == "isolate", group.name in related)


def _group(group: Group, isolate: bool, related: bool) -> Part:
    return Part(
        Sort.GROUP,
        _demands(group.resources),
        group.required,
        group.forbidden,
        group.any_of,
        apart=isolate and bool(group.resources),
        name=group.name if related else "",
    )


def _devices(request: Request) -> Iterator[Part]:
    for devices in request.pci:
        near = devices.numa_policy if request.numa else None
        yield Part(Sort.DEVICE, ((devices.resource_class, 1),), devices.required, affinity=near, count=devices.count)


def _spread(request: Request, of_root: Collection[str]) -> Iterator[Part]:
    for resource_class, amount in sorted(request.resources.items()):
        if resource_class not in of_root:
            yield Part(Sort.SPREAD, ((resource_class, amount),), forbidden=request.forbidden)


def _counted(parts: Iterable[Part]) -> Iterator[Part]:
    counts: Counter[Part] = Counter()
    for part in parts:
        counts[part if part.count == 1 else replace(part, count=1)] += part.count
    for part, count in counts.items():
        yield part if count == 1 else replace(part, count=count)
