"""Nova's objects for NUMA nodes of hosts, cells of guests, and PCI devices. Needs Nova."""

import importlib
from typing import Any

PAGE_KB, HUGE_KB = 4, 2048


def _objects() -> Any:
    return importlib.import_module("nova.objects")


def host_topology(host: dict[str, Any]) -> Any:
    """Return the NUMATopology of a host."""
    cells, first = [], 0
    for number, node in enumerate(host["numa"]):
        cells.append(_cell(number, node, first))
        first += node["shared"] + node["dedicated"]
    return _objects().NUMATopology(cells=cells)


def _cell(number: int, node: dict[str, Any], first: int) -> Any:
    # Nova's numbers include the memory of huge pages, whereas a case counts it apart, as redsched's agent does.
    total, used = (pages * HUGE_KB // 1024 for pages in node.get("pages", (0, 0)))
    dedicated = list(range(first, first + node["dedicated"]))
    shared = list(range(first + node["dedicated"], first + node["dedicated"] + node["shared"]))
    return _objects().NUMACell(
        id=number,
        cpuset=set(shared),
        pcpuset=set(dedicated),
        memory=node["memory"] + total,
        cpu_usage=node["shared_used"],
        memory_usage=node["memory_used"] + used,
        pinned_cpus=set(dedicated[: node["dedicated_used"]]),
        siblings=_cores(dedicated, node["threads"]) + _cores(shared, 1),
        mempages=_pages(node) if "pages" in node else [],
        network_metadata=_objects().NetworkMetadata(physnets=set(), tunneled=False),
        socket=node.get("socket"),
    )


def _cores(cpus: list[int], threads: int) -> list[set[int]]:
    return [set(cpus[first : first + threads]) for first in range(0, len(cpus), threads)]


def _pages(node: dict[str, Any]) -> list[Any]:
    """Return both sizes of pages."""
    per_mb = 1024 // PAGE_KB
    small = {"size_kb": PAGE_KB, "total": node["memory"] * per_mb, "used": node["memory_used"] * per_mb}
    huge = {"size_kb": HUGE_KB, "total": node["pages"][0], "used": node["pages"][1]}
    return [_objects().NUMAPagesTopology(reserved=0, **one) for one in (small, huge)]


def requested_topology(guest: dict[str, Any]) -> Any:
    """Return the InstanceNUMATopology of a guest."""
    cells, first = [], 0
    for number, (cpus, memory, dedicated) in enumerate(guest["cells"]):
        ids = range(first, first + cpus)
        first += cpus
        cells.append(
            _objects().InstanceNUMACell(
                id=number,
                cpuset=set(ids[dedicated:]),
                pcpuset=set(ids[:dedicated]),
                memory=memory,
                pagesize=guest.get("page_kb"),
                cpu_policy=guest["policy"],
                cpu_thread_policy=guest.get("thread_policy"),
            )
        )
    return _objects().InstanceNUMATopology(cells=cells)


def pci_pools(pools: list[list[Any]]) -> Any:
    """Return the PciDevicePoolList of a host."""
    objects = _objects()
    found = [
        objects.PciDevicePool(
            vendor_id="8086", product_id=product, numa_node=node, count=count, tags={"dev_type": "type-PCI"}
        )
        for product, count, node in pools
    ]
    return objects.PciDevicePoolList(objects=found)


def pci_requests(requests: list[list[Any]]) -> Any:
    """Return the InstancePCIRequests of a guest."""
    objects = _objects()
    found = [
        objects.InstancePCIRequest(
            count=count,
            spec=[{"vendor_id": "8086", "product_id": product}],
            numa_policy=policy,
            request_id=f"00000005-0000-4000-8000-{number:012d}",
        )
        for number, (product, count, policy) in enumerate(requests)
    ]
    return objects.InstancePCIRequests(requests=found, instance_uuid="00000009-0000-4000-8000-000000000000")
