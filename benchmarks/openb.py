"""The node and task lists of cluster-trace-gpu-v2023 ("openb") as a fleet file and as requests.

    sn,cpu_milli,memory_mib,gpu,model                                              a node; no model: no GPU
    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,...                   a task; gpu_spec "A|B": one of these

A share of a GPU takes a whole one here: pools, from which shares could be taken, are not modelled. Nothing is asked of
a task's times. Pure: no network, and no files but the two it is given.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CPU, MEMORY, GPU = "CUSTOM_CPU_MILLI", "MEMORY_MB", "CUSTOM_GPU"


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the list: what it has, and the model of its GPUs ('' without)."""

    name: str
    amounts: Mapping[str, int]
    model: str

    @property
    def traits(self) -> frozenset[str]:
        """What a task's gpu_spec can ask for."""
        return frozenset([trait_of(self.model)] if self.model else [])


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the list: what it takes, and the GPU models of which it needs one (none: any)."""

    name: str
    amounts: Mapping[str, int]
    models: tuple[str, ...]

    @property
    def traits(self) -> frozenset[str]:
        """Of these the host must have one; empty: any host will do."""
        return frozenset(map(trait_of, self.models))

    def body(self, policy: str = "") -> bytes:
        """The request as JSON. The task's name is its claim id, so that asking again is safe."""
        asked: dict[str, Any] = {"resources": self.amounts, "claim_ids": [self.name]}
        if self.models:
            asked["any_of"] = [sorted(self.traits)]
        if policy:
            asked["policy"] = policy
        return json.dumps(asked).encode()


def trait_of(model: str) -> str:
    """The trait that a host with GPUs of this model has."""
    return "CUSTOM_GPU_MODEL_" + re.sub(r"[^A-Z0-9]", "_", model.upper())


def read_nodes(lines: Iterable[str]) -> list[Node]:
    """The nodes of a node list, in its order."""
    return [
        Node(row["sn"], _amounts(row, gpus=int(row["gpu"])), row["model"] if int(row["gpu"]) else "")
        for row in csv.DictReader(lines)
    ]


def read_tasks(lines: Iterable[str]) -> list[Task]:
    """The tasks of a task list, in its order."""
    return [
        Task(row["name"], _amounts(row, gpus=int(row["num_gpu"])), tuple(filter(None, row["gpu_spec"].split("|"))))
        for row in csv.DictReader(lines)
    ]


def _amounts(row: Mapping[str, str], gpus: int) -> dict[str, int]:
    # Some tasks say 0 memory: what is not needed is not asked for.
    amounts = {CPU: int(row["cpu_milli"]), MEMORY: int(row["memory_mib"]), GPU: gpus}
    return {slot: amount for slot, amount in amounts.items() if amount}


def fleet_text(nodes: Iterable[Node]) -> str:
    """The nodes as a fleet file. JSON, which is YAML too and quicker to read."""
    return json.dumps({"hosts": [_host(node) for node in nodes]})


def _host(node: Node) -> dict[str, Any]:
    inventories = {slot: {"total": amount} for slot, amount in node.amounts.items()}
    return {"name": node.name, "inventories": inventories, "traits": sorted(node.traits)}
