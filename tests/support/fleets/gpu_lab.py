"""A small lab: boxes of two NUMA nodes with two GPUs each, and machines without GPUs."""

from collections.abc import Collection, Mapping

from redsched.cache.columns import Columns
from redsched.model import NUMA_NODE, Group, HostReport, Inventory, Request
from redsched.model.hosts import Pool
from tests.support.builders.columns import columns_of

GPU = "CUSTOM_GPU_MILLI"
UP = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
MACHINE = UP | {"capacity.VCPU": "16", "capacity.MEMORY_MB": "32768"}


def box(used: Collection[int] = ()) -> dict[str, str]:
    """Return the fields of a box, some of whose GPUs are claimed."""
    fields = dict(UP)
    for node in range(2):
        fields |= {f"pool.numa{node}": "/", f"trait.numa{node}/{NUMA_NODE}": "1", f"capacity.numa{node}/VCPU": "16"}
    for gpu in range(4):
        slot = f"gpu{gpu}/{GPU}"
        fields |= {f"pool.gpu{gpu}": f"numa{gpu // 2}", f"capacity.{slot}": "1000"}
        fields |= {f"claimed.{slot}": "1000"} if gpu in used else {}
    return fields


def lab(boxes: Mapping[str, Collection[int]], machines: int = 20) -> Columns:
    """Return boxes by name, each with the GPUs that are claimed there, and machines."""
    hosts = {name: box(used) for name, used in boxes.items()}
    return columns_of(**{f"ci-{number + 1}": MACHINE for number in range(machines)}, **hosts)


def reports(boxes: int = 4, machines: int = 20) -> list[HostReport]:
    """Return the reports of gpu-1, gpu-2 ... and ci-1, ci-2 ..."""
    pools = {f"numa{node}": Pool({"VCPU": Inventory(16)}, traits=frozenset((NUMA_NODE,))) for node in range(2)}
    pools |= {f"gpu{gpu}": Pool({GPU: Inventory(1000)}, parent=f"numa{gpu // 2}") for gpu in range(4)}
    found = [HostReport(f"gpu-{number + 1}", {}, lease_s=3600, pools=pools) for number in range(boxes)]
    inventories = {"VCPU": Inventory(16), "MEMORY_MB": Inventory(32_768)}
    return found + [HostReport(f"ci-{number + 1}", inventories, lease_s=3600) for number in range(machines)]


def gpus(number: int, **more: object) -> Request:
    """Return a request for whole GPUs of one host, each as a group of its own."""
    groups = tuple(Group(f"g{one}", {GPU: 1000}) for one in range(number))
    return Request(groups=groups, **more)  # type: ignore[arg-type]
