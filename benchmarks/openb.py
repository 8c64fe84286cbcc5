"""The node and task lists of cluster-trace-gpu-v2023 ("openb") as a fleet file and as requests.

    sn,cpu_milli,memory_mib,gpu,model                                              a node; no model: no GPU
    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,...                   a task; gpu_spec "A|B": one of these

A GPU is a pool of a thousand shares. A task takes its share from one GPU, or whole GPUs. The times of tasks are
ignored. Pure: no network, and no files except the two arguments.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redsched.model import Group, HostReport, Inventory, Pool, Request

CPU, MEMORY, SHARES = "CUSTOM_CPU_MILLI", "MEMORY_MB", "CUSTOM_GPU_MILLI"
WHOLE = 1000


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the list: its resources besides GPUs, the number of GPUs, and their model ('' for none)."""

    name: str
    amounts: Mapping[str, int]
    gpus: int
    model: str

    @property
    def traits(self) -> frozenset[str]:
        """The models that a task's gpu_spec can require, of the host and of each GPU."""
        return frozenset([trait_of(self.model)] if self.model else [])

    def slots(self) -> dict[str, int]:
        """The capacity of every slot."""
        return {**self.amounts, **{f"gpu{index}/{SHARES}": WHOLE for index in range(self.gpus)}}

    def report(self) -> HostReport:
        """Return the node as a host."""
        gpu = Pool({SHARES: Inventory(WHOLE)}, traits=self.traits)
        return HostReport(
            self.name,
            {slot: Inventory(amount) for slot, amount in self.amounts.items()},
            traits=self.traits,
            pools={f"gpu{index}": gpu for index in range(self.gpus)},
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the list: its amounts of the host, its share of each GPU, and the models that it accepts."""

    name: str
    amounts: Mapping[str, int]
    shares: tuple[int, ...]
    models: tuple[str, ...]

    @property
    def traits(self) -> frozenset[str]:
        """The host must have one of these; empty: any host."""
        return frozenset(map(trait_of, self.models))

    def request(self, policy: str = "") -> Request:
        """Return the task as a request. Its name is the claim id, so that repeating the request is safe.

        A single model is required of each GPU; one of several models is required of the host, whose GPUs are all equal.
        """
        of_one = self.traits if len(self.models) == 1 else frozenset[str]()
        return Request(
            self.amounts,
            groups=tuple(Group(f"gpu{number}", {SHARES: share}, of_one) for number, share in enumerate(self.shares)),
            group_policy="isolate" if len(self.shares) > 1 else "none",
            any_of=(self.traits,) if len(self.models) > 1 else (),
            policy=policy,
            claim_ids=(self.name,),
        )

    def body(self, policy: str = "") -> bytes:
        """Return the same as JSON, for the API."""
        request = self.request(policy)
        asked: dict[str, Any] = {"resources": self.amounts, "claim_ids": [self.name]}
        if request.groups:
            asked["groups"] = [
                {"name": one.name, "resources": one.resources, "required": sorted(one.required)}
                for one in request.groups
            ]
            asked["group_policy"] = request.group_policy
        if request.any_of:
            asked["any_of"] = [sorted(one) for one in request.any_of]
        if policy:
            asked["policy"] = policy
        return json.dumps(asked).encode()


def trait_of(model: str) -> str:
    """Return the trait of a host with GPUs of this model, and of each of the GPUs."""
    return "CUSTOM_GPU_MODEL_" + re.sub(r"[^A-Z0-9]", "_", model.upper())


def read_nodes(lines: Iterable[str]) -> list[Node]:
    """Return the nodes of a node list, in its order."""
    return [
        Node(row["sn"], _amounts(row), int(row["gpu"]), row["model"] if int(row["gpu"]) else "")
        for row in csv.DictReader(lines)
    ]


def read_tasks(lines: Iterable[str]) -> list[Task]:
    """Return the tasks of a task list, in its order."""
    return [
        Task(row["name"], _amounts(row), _shares(row), tuple(filter(None, row.get("gpu_spec", "").split("|"))))
        for row in csv.DictReader(lines)
    ]


def _amounts(row: Mapping[str, str]) -> dict[str, int]:
    # Some tasks have 0 memory: the request omits it.
    amounts = {CPU: int(row["cpu_milli"]), MEMORY: int(row["memory_mib"])}
    return {slot: amount for slot, amount in amounts.items() if amount}


def _shares(row: Mapping[str, str]) -> tuple[int, ...]:
    count = int(row["num_gpu"])
    return (int(row["gpu_milli"]),) if count == 1 else (WHOLE,) * count


def fleet_text(nodes: Iterable[Node]) -> str:
    """Return the nodes as a fleet file. JSON, which is also YAML and quicker to read."""
    return json.dumps({"hosts": [_host(node) for node in nodes]})


def _host(node: Node) -> dict[str, Any]:
    report = node.report()
    return {
        "name": node.name,
        "inventories": _inventories(report.inventories),
        "traits": sorted(node.traits),
        "pools": {
            name: {"inventories": _inventories(pool.inventories), "traits": sorted(pool.traits)}
            for name, pool in report.pools.items()
        },
    }


def _inventories(inventories: Mapping[str, Inventory]) -> dict[str, dict[str, int]]:
    return {name: {"total": one.total} for name, one in inventories.items()}
