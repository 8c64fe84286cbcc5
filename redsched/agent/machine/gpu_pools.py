"""Report GPUs as pools: a thousand shares of each, its memory, its model as a trait, and its usage.

A pool is named by the number that the driver gives the GPU now, and says which GPU it is: `redsched.agent.device_pools`
keeps the name with the GPU.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from redsched.agent.collectors.component import Part
from redsched.agent.machine.nvidia import Gpu
from redsched.agent.machine.pci import DEVICES, numa_node
from redsched.agent.machine.sysfs import SYS
from redsched.model import Inventory, Pool

MIB = 2**20
SHARES = 1000
"""The CUSTOM_GPU_MILLI of one GPU."""

LONGEST_TRAIT = 64


def gpu_pools(
    gpus: Sequence[Gpu], claimed: Mapping[str, Collection[int]] | None, nodes: Collection[str], sys: Path = SYS
) -> Part:
    """Return the GPUs as pools, each below the pool in `nodes` that is its NUMA node.

    `claimed` has the pids of the work of the claims that hold each device: what other processes hold of a GPU is
    external usage, also if they belong to a claim that holds another GPU. It is None if processes could not be
    attributed to claims.
    """
    pools, unexplained, metrics = dict[str, Pool](), dict[str, int](), dict[str, float]()
    for gpu in gpus:
        name, node = f"gpu{gpu.number}", f"numa{numa_node(sys / DEVICES / gpu.address)}"
        parent, traits = node if node in nodes else "", frozenset({trait_of(gpu.model)})
        pools[name] = Pool(_inventories(gpu), parent, traits, gpu.device)
        if gpu.percent is not None:
            metrics[f"{name}.percent"] = float(gpu.percent)
        if claimed is not None:
            unexplained |= {f"{name}/{one}": amount for one, amount in _unexplained(gpu, claimed.get(gpu.device, ()))}
    return Part(pools, unexplained, frozenset(unexplained), metrics)


def trait_of(model: str) -> str:
    """Return a model as a trait: CUSTOM_GPU_T4, CUSTOM_GPU_A100_SXM4_40GB. The vendor's own names are omitted."""
    words = re.findall("[A-Z0-9]+", model.upper())
    return "_".join(["CUSTOM_GPU", *(word for word in words if word not in ("NVIDIA", "TESLA"))])[:LONGEST_TRAIT]


def _inventories(gpu: Gpu) -> dict[str, Inventory]:
    shares = {"CUSTOM_GPU_MILLI": Inventory(SHARES)}
    return shares | ({"CUSTOM_GPU_MEMORY_MB": Inventory(gpu.memory_bytes // MIB)} if gpu.memory_bytes else {})


def _unexplained(gpu: Gpu, claimed: Collection[int]) -> Iterator[tuple[str, int]]:
    """Yield the memory that other processes hold, and the same fraction of the shares, but at least one share.

    So a GPU that any other process uses is never allocated whole.
    """
    if gpu.processes is None:
        return
    foreign = [held for pid, held in gpu.processes.items() if pid not in claimed]
    part = -(-sum(foreign) * SHARES // gpu.memory_bytes) if gpu.memory_bytes else 0
    yield "CUSTOM_GPU_MILLI", min(SHARES, max(1, part)) if foreign else 0
    if gpu.memory_bytes:
        yield "CUSTOM_GPU_MEMORY_MB", -(-sum(foreign) // MIB)
