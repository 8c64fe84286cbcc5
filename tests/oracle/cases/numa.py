"""Cases for Nova's NUMATopologyFilter: hosts with nodes, and guests with cells and devices near them.

A node is a dict: `shared` and `dedicated` (numbers of CPUs), `shared_used`, `dedicated_used`, `memory` and
`memory_used` in MB, `threads` per core, `pages` ([total, used] of 2 MB pages, absent if the host has none), `socket`. A
device pool is [product, count, node or None]. A guest has `cells` ([cpus, memory_mb, dedicated cpus]), `policy`,
`thread_policy` and `page_kb`.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

PRODUCT = "1572"


def numa_blocks(salt: str = "") -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Yield hosts and requests: with ordinary memory, with huge pages, with threads, and with devices."""
    rng = Random(f"{salt}numa")
    for ratio in (1.0, 1.5):
        yield [_host(rng, {"memory_ratio": ratio}) for _ in range(16)], [_guest(rng) for _ in range(40)]
    yield [_host(rng, {}, pages=True) for _ in range(16)], [_guest(rng, pages=True) for _ in range(40)]
    yield [_host(rng, {}, threads=2) for _ in range(16)], [_guest(rng, threads=True) for _ in range(30)]
    yield [_with_devices(rng) for _ in range(24)], [_near(rng) for _ in range(40)]


def _host(rng: Random, more: dict[str, Any], pages: bool = False, threads: int = 1) -> dict[str, Any]:
    nodes = [_node(rng, pages, threads) for _ in range(rng.choice((1, 2, 2, 4)))]
    return {"numa": nodes, "cpu_ratio": rng.choice((1.0, 2.0))} | more


def _node(rng: Random, pages: bool, threads: int) -> dict[str, Any]:
    shared, dedicated = rng.choice((0, 2, 4)), threads * rng.choice((0, 2, 4))
    node: dict[str, Any] = {
        "shared": shared,
        "dedicated": dedicated,
        "shared_used": rng.randrange(shared + 1),
        "dedicated_used": rng.randrange(dedicated + 1),
        "memory": (memory := rng.choice((1024, 2048))),
        "memory_used": rng.choice((0, 0, 512, memory)),
        "threads": threads,
    }
    if pages:
        total = rng.choice((0, 256, 512))
        node["pages"] = [total, rng.choice((0, total // 2))]
    return node


def _guest(rng: Random, pages: bool = False, threads: bool = False) -> dict[str, Any]:
    policy = "dedicated" if threads else rng.choice(("shared", "dedicated", "mixed"))
    cells = [_cell(rng, policy) for _ in range(rng.choice((1, 1, 2)))]
    guest: dict[str, Any] = {"cells": cells, "policy": policy}
    if threads:
        guest["thread_policy"] = rng.choice(("prefer", "require", "require", "isolate"))
    if pages:
        guest["page_kb"] = rng.choice((None, 4, 2048, 2048))
    return {"numa": guest}


def _cell(rng: Random, policy: str) -> list[int]:
    cpus, memory = rng.choice((1, 2, 3)), rng.choice((256, 512, 1024))
    dedicated = {"shared": 0, "dedicated": cpus, "mixed": rng.randrange(1, cpus) if cpus > 1 else 1}[policy]
    return [cpus, memory, dedicated]


def _with_devices(rng: Random) -> dict[str, Any]:
    host = _host(rng, {})
    sockets = rng.choice((None, 1, 2))
    for number, node in enumerate(host["numa"]):
        node |= {"shared": 4, "shared_used": 0, "memory": 2048, "memory_used": rng.choice((0, 2048))}
        if sockets is not None:
            node["socket"] = number * sockets // len(host["numa"])
    nodes = [None, *range(len(host["numa"]))]
    host["pci"] = [[PRODUCT, rng.choice((1, 1, 2)), node] for node in nodes if rng.random() < 0.5]
    return host


def _near(rng: Random) -> dict[str, Any]:
    policy = rng.choice(("required", "legacy", "preferred", "socket"))
    cells = [[1, 512, 0] for _ in range(rng.choice((1, 1, 2)))]
    return {"numa": {"cells": cells, "policy": "shared"}, "pci": [[PRODUCT, rng.choice((1, 1, 2, 3)), policy]]}
