"""What must hold during and after a replay, computed in plain Python from requests, responses and the store.

Pure, and deliberately without redsched's own fit: each function returns errors as text.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.openb import SHARES, Node, Task
from benchmarks.replay import Asked

MAX_SHOWN = 5
Free = dict[str, dict[str, int]]
Traits = Mapping[str, frozenset[str]]


def unanswered(asked: Iterable[Asked]) -> list[str]:
    """Return the tasks that were neither placed nor refused."""
    return [
        f"{one.task.name} has no answer (last status {one.status})"
        for one in asked
        if one.status not in (200, 201, 409)
    ]


def wrong_slots(nodes: Iterable[Node], placed: Iterable[Asked]) -> list[str]:
    """Return responses whose slots do not match the request: the amounts, and each share from another GPU."""
    capacity = {node.name: node.slots() for node in nodes}
    wrong = []
    for one in placed:
        shares = sorted(amount for slot, amount in one.slots.items() if is_gpu(slot))
        amounts = {slot: amount for slot, amount in one.slots.items() if not is_gpu(slot)}
        if (amounts, shares) != (dict(one.task.amounts), sorted(one.task.shares)):
            wrong.append(f"{one.task.name} asked {one.task.amounts} and {one.task.shares}, answered {one.slots}")
        if one.slots.keys() - capacity.get(one.host, {}).keys():
            wrong.append(f"{one.task.name} was given {one.slots} of {one.host}, which does not have all of them")
    return wrong


def wrong_claims(placed: Mapping[str, Asked], claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return claims of the store that differ from the answered ones: id, host and amounts."""
    answered = {name: (one.host, dict(one.slots)) for name, one in placed.items()}
    stored = {one["claim_id"]: (one["host"], one["slots"]) for one in claims}
    wrong = [f"{name} was answered and is not in the store" for name in answered.keys() - stored.keys()]
    wrong += [f"{name} is in the store and was not answered" for name in stored.keys() - answered.keys()]
    both = sorted(answered.keys() & stored.keys())
    return wrong + [f"{n}: answered {answered[n]}, stored {stored[n]}" for n in both if answered[n] != stored[n]]


def wrong_sums(nodes: Iterable[Node], placed: Mapping[str, Asked], hosts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return slots whose claimed amount is not the sum of their placements, or exceeds the node's capacity."""
    sums: Counter[tuple[str, str]] = Counter()
    for one in placed.values():
        sums.update({(one.host, slot): amount for slot, amount in one.slots.items()})
    capacity = {node.name: node.slots() for node in nodes}
    wrong = []
    for host in hosts:
        for slot, seen in host["slots"].items():
            expected, most = sums.pop((host["name"], slot), 0), capacity[host["name"]].get(slot, 0)
            if seen["claimed"] != expected or seen["claimed"] > most:
                wrong.append(f"{host['name']} {slot}: {seen['claimed']} of {most} claimed, placed {expected}")
    return wrong + [f"{slot} was placed on {host}, which does not have it" for host, slot in sums]


def gpu_shares(hosts: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the claimed amount of all GPUs of the fleet, and their capacity, in thousandths of a GPU."""
    slots = [seen for host in hosts for slot, seen in host["slots"].items() if is_gpu(slot)]
    return sum(one["claimed"] for one in slots), sum(one["capacity"] for one in slots)


def is_gpu(slot: str) -> bool:
    """Return whether a slot is that of a GPU."""
    return slot.endswith(f"/{SHARES}")


def still_fitting(refused: Iterable[Task], hosts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return refused tasks for which a host has room now, by GET /v1/hosts."""
    free = {host["name"]: {slot: one["free"] for slot, one in host["slots"].items()} for host in hosts}
    traits = {host["name"]: frozenset(host["traits"]) for host in hosts}
    found = ((task, room_for(task, free, traits)) for task in refused)
    return [f"{task.name} was refused, and {host} has room for it" for task, host in found if host]


def false_refusals(nodes: Sequence[Node], held: Mapping[str, Asked], asked: Iterable[Asked]) -> list[str]:
    """Return refusals while a host certainly had room, in a replay without releases.

    `held` was placed before it. Everything in progress at the time of a refusal counts as taken, so a host with room
    despite that had it all the time.
    """
    free: Free = {node.name: node.slots() for node in nodes}
    traits = {node.name: node.traits for node in nodes}
    for one in held.values():
        _take(free, one)
    waiting = sorted((one for one in asked if one.placed), key=lambda one: one.began, reverse=True)
    found = []
    for one in sorted((one for one in asked if one.refused), key=lambda one: one.ended):
        while waiting and waiting[-1].began < one.ended:
            _take(free, waiting.pop())
        host = room_for(one.task, free, traits)
        found += [f"{one.task.name} was refused while {host} had room for it"] if host else []
    return found


def room_for(task: Task, free: Free, traits: Traits) -> str:
    """Return a host that has what a task needs; '' if none has."""
    wanted, models = list(task.amounts.items()), task.traits
    for host, left in free.items():
        if not all(amount <= left.get(slot, 0) for slot, amount in wanted) or (models and not models & traits[host]):
            continue
        # All shares of a task are equal, so each GPU with room for one will do.
        share = max(task.shares, default=0)
        if sum(is_gpu(slot) and amount >= share for slot, amount in left.items()) >= len(task.shares):
            return host
    return ""


def _take(free: Free, one: Asked) -> None:
    left = free[one.host]
    for slot, amount in one.slots.items():
        left[slot] -= amount


def shortened(problems: Sequence[str]) -> list[str]:
    """Return the first few, and the number of the others."""
    more = len(problems) - MAX_SHOWN
    return [*problems[:MAX_SHOWN], *([f"... and {more} more of that kind"] if more > 0 else [])]
