"""NUMA nodes and PCI devices as objects of Nova, of hosts from their pools and of requests from `numa` and `pci`.

Hosts report what each node has, but not which CPUs: CPUs are numbered here, and the first ones are in use. Under the
policies `require` and `isolate` for threads the numbers would matter; `require` is decided by a trait of the host, and
`isolate` is refused.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from redsched.cache.columns import Columns
from redsched.decide.fit import unscaled_free_on
from redsched.decide.plugins.nova.host_state import HostState, pci_classes
from redsched.decide.plugins.nova.limited import check_asking
from redsched.decide.plugins.nova.request_spec import RequestSpec
from redsched.errors import InvalidRequest
from redsched.model import NUMA_NODE, CpuPolicy, NumaAffinity, NumaCell
from redsched.model.validation import split_slot

HYPERTHREADING = "HW_CPU_HYPERTHREADING"
THREAD_POLICY = "hw_cpu_thread_policy"
MAX_CPUS = 8192
"""The most CPUs of a node that are numbered; the rest of a larger capacity is left out."""
_CLASS = "redsched_class"
"""The tag of Nova's device pools and requests that has the resource class."""
_PAGES_PREFIX, _PAGES_SUFFIX = "CUSTOM_HUGE_PAGES_", "KB"
_SMALL_PAGE_KB = 4


def objects(module: str) -> Any:
    """Return a module of nova.objects. All objects are registered first, as they refer to each other."""
    import_module("nova.objects").register_all()
    return import_module(f"nova.objects.{module}")


def host_topology(state: HostState) -> Any:
    """Return the NUMATopology of a host, with a cell for each NUMA node in natural order; None if it has none."""
    cells = [_host_cell(state, number, node) for number, node in enumerate(_nodes(state))]
    return objects("numa").NUMATopology(cells=cells) if cells else None


def pci_stats(state: HostState) -> Any:
    """Return the PciDeviceStats of a host, with a pool for each slot of devices."""
    stats = import_module("nova.pci.stats")
    requested = state._request.pci if state._request else ()
    by_socket = any(one.numa_policy is NumaAffinity.SOCKET for one in requested)
    # Without a filter of its own, it would look for the devices of nova.conf on this machine.
    made = stats.PciDeviceStats(state.numa_topology if by_socket else None, dev_filter=stats.whitelist.Whitelist([]))
    made.pools = list(_device_pools(state))
    return made


def requested_topology(spec: RequestSpec) -> Any:
    """Return the InstanceNUMATopology of a request; None without `numa`. Raises InvalidRequest for `isolate`."""
    numa = spec._request.numa
    if numa is None:
        return None
    if spec._request.properties.get(THREAD_POLICY) == "isolate":
        raise InvalidRequest(
            f"properties has {THREAD_POLICY} 'isolate', which Nova's classes cannot decide here, as hosts do not "
            f"report which CPUs are taken: use forbidden with {HYPERTHREADING}"
        )
    cells, first = [], 0
    for number, cell in enumerate(numa.cells):
        cells.append(_requested_cell(spec, number, cell, first))
        first += cell.cpus
    return objects("instance_numa").InstanceNUMATopology(cells=cells, emulator_threads_policy=None)


def pci_requests(spec: RequestSpec) -> Any:
    """Return the InstancePCIRequests of a request: each names a class, and the traits that its devices need."""
    module = objects("instance_pci_requests")
    requests = [
        module.InstancePCIRequest(
            count=one.count,
            spec=[{_CLASS: one.resource_class} | dict.fromkeys(map(_tag, one.required), "true")],
            alias_name=one.resource_class,
            numa_policy=str(one.numa_policy),
        )
        for one in spec._request.pci
    ]
    return module.InstancePCIRequests(requests=requests)


def _nodes(state: HostState) -> list[str]:
    tree = state._columns.layout(state._row)
    return [pool for pool in tree.pools if NUMA_NODE in tree.traits[pool]]


def _host_cell(state: HostState, number: int, node: str) -> Any:
    columns, row = state._columns, state._row
    (shared, shared_used), (dedicated, pinned) = (_cpus(columns, row, f"{node}/{one}") for one in ("VCPU", "PCPU"))
    memory, memory_used = _amounts(columns, row, f"{node}/MEMORY_MB")
    pages = [(_SMALL_PAGE_KB, memory * 1024 // _SMALL_PAGE_KB, memory_used * 1024 // _SMALL_PAGE_KB)]
    for name in sorted(columns.layout(row).classes[node]):
        size_kb = name.removeprefix(_PAGES_PREFIX).removesuffix(_PAGES_SUFFIX)
        if name.startswith(_PAGES_PREFIX) and size_kb.isdecimal():
            pages.append((int(size_kb), *_amounts(columns, row, f"{node}/{name}")))
    # In Nova the memory of a node includes its huge pages.
    huge = [(size_kb * total // 1024, size_kb * used // 1024) for size_kb, total, used in pages[1:]]
    module = objects("numa")
    return _limited_cell()(
        id=number,
        cpuset=set(range(shared)),
        pcpuset=set(range(shared, shared + dedicated)),
        memory=memory + sum(total for total, _ in huge),
        cpu_usage=shared_used,
        memory_usage=memory_used + sum(used for _, used in huge),
        pinned_cpus=set(range(shared, shared + min(pinned, dedicated))),
        siblings=_siblings(state, shared, dedicated),
        mempages=[
            module.NUMAPagesTopology(size_kb=kb, total=total, used=used, reserved=0) for kb, total, used in pages
        ],
        socket=_socket(state, node),
    )


def _socket(state: HostState, node: str) -> int | None:
    """Return a number for the socket of a node; None if it is unknown."""
    tree = state._columns.layout(state._row)
    sockets = [tree.socket(one) for one in _nodes(state)]
    socket = tree.socket(node)
    return sockets.index(socket) if socket else None


@cache
def _limited_cell() -> type[Any]:
    """Return NUMACell, held to the limit of work: Nova reads the ids in each of the n! orders of n nodes."""
    base = objects("numa").NUMACell

    def read_id(cell: Any) -> int:
        check_asking()
        return int(base.id.fget(cell))

    return type("NUMACell", (base,), {"id": property(read_id, base.id.fset)})


def _siblings(state: HostState, shared: int, dedicated: int) -> list[set[int]]:
    """Return the dedicated CPUs core by core: pairs with hyperthreading, else one by one. Nova needs some core."""
    threads, end = 2 if state._columns.traits[HYPERTHREADING][state._row] else 1, shared + dedicated
    return [set(range(one, min(one + threads, end))) for one in range(shared, end, threads)] or [set()]


def _amounts(columns: Columns, row: int, slot: str) -> tuple[int, int]:
    """Return the total of a slot without its reserved part and allocation ratio, and the used amount."""
    used = columns.claimed[slot].item(row) + columns.external[slot].item(row)
    return int(unscaled_free_on(columns, slot, row)) + used, used


def _cpus(columns: Columns, row: int, slot: str) -> tuple[int, int]:
    """Return what `_amounts` returns, if there are not too many CPUs; else what is free of as many as are numbered."""
    total, used = _amounts(columns, row, slot)
    return min(total, MAX_CPUS), max(0, used - max(0, total - MAX_CPUS))


def _device_pools(state: HostState) -> Iterator[dict[str, Any]]:
    columns, row = state._columns, state._row
    tree, nodes = columns.layout(row), _nodes(state)
    for resource_class in pci_classes(state):
        for slot in (resource_class, *columns.pool_slots(resource_class)):
            pool, _ = split_slot(slot)
            total, used = _amounts(columns, row, slot)
            if total:
                node = tree.numa_node(pool) if pool in tree.parent else None
                yield {
                    "vendor_id": "",
                    "product_id": "",
                    "dev_type": "type-PCI",
                    "numa_node": None if node is None else nodes.index(node),
                    "count": max(0, total - used),
                    _CLASS: resource_class,
                    **dict.fromkeys(map(_tag, _traits(state, pool)), "true"),
                }


def _traits(state: HostState, pool: str) -> Iterable[str]:
    """Return the traits of a pool; for '' those of the root."""
    if pool:
        return state._columns.layout(state._row).traits.get(pool, ())
    traits = state._columns.traits
    return (name for name in traits if "/" not in name and traits[name][state._row])


def _tag(trait: str) -> str:
    return f"trait:{trait}"


def _requested_cell(spec: RequestSpec, number: int, cell: NumaCell, first: int) -> Any:
    numa = spec._request.numa
    policy = numa.policy if numa else CpuPolicy.SHARED
    dedicated = cell.cpus if policy is CpuPolicy.DEDICATED else cell.dedicated_cpus
    return objects("instance_numa").InstanceNUMACell(
        id=number,
        cpuset=set(range(first + dedicated, first + cell.cpus)),
        pcpuset=set(range(first, first + dedicated)),
        memory=cell.memory_mb,
        pagesize=numa.page_size_kb if numa else None,
        cpu_policy=str(policy),
    )
