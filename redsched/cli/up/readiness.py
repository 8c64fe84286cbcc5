"""Readiness checks of `redsched up`: it polls the API, and finds amounts for a first request in the store.

Not by the API, which may require a token.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import uvloop

from redsched import progress
from redsched.cli.up.stack import LocalStack
from redsched.errors import RedschedError, StoreUnavailable
from redsched.model import HostStatus, Request
from redsched.model.records.hosts import HostView, SlotView
from redsched.model.validation import split_slot
from redsched.scheduler import Scheduler
from redsched.settings import Settings

ASK_EVERY_S = 0.05
ASK_TIMEOUT_S = 5.0
START_TIMEOUT_S = 120.0
MAX_HOSTS = 1000
"""The most hosts that are read."""
MAX_TRIED = 10
"""The most requests that are tried."""
COMMON = ("VCPU", "MEMORY_MB")


def ready(everything: LocalStack) -> None:
    """Wait until /readyz reports ready. Raises StoreUnavailable, with what is missing, after START_TIMEOUT_S."""
    began_s = time.monotonic()
    deadline = began_s + START_TIMEOUT_S
    while (said := _readiness(everything)).get("status") != "ready":
        progress.report("s", round(time.monotonic() - began_s))
        everything.look()
        gone = everything.gone_agents()
        if gone:
            name, code = next(iter(gone.items()))
            raise StoreUnavailable(f"{name} exited with code {code}: see its error above, or leave it out: --no-agent")
        if time.monotonic() > deadline:
            raise StoreUnavailable(
                f"not ready after {START_TIMEOUT_S:g} s: {said.get('detail', 'the API does not respond')}"
            )
        time.sleep(ASK_EVERY_S)


def _readiness(everything: LocalStack) -> dict[str, Any]:
    """Return what /readyz answers; of one that may refuse this process, what workers' files and the store say."""
    if everything.is_open:
        return ask(f"{everything.workers.url}/readyz")
    if missing := everything.workers.registry.missing():
        return {"detail": f"worker {missing[0]} has not caught up"}
    expected = min(everything.simulated + everything.options.agent, MAX_HOSTS)
    reported = len(uvloop.run(_hosts(everything.url, everything.settings))) if expected else 0
    return {"status": "ready"} if reported >= expected else {"detail": f"{reported} of {expected} hosts have reported"}


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """Amounts that fit now; {} if none of those tried do, and then whether there are hosts at all."""

    resources: dict[str, int]
    has_hosts: bool


def first_request(everything: LocalStack) -> FirstRequest:
    """Return the smallest amounts of up to two classes that a host with room can give, as a decision has confirmed."""
    return uvloop.run(_first_request(everything.url, everything.settings))


async def _first_request(url: str, settings: Settings) -> FirstRequest:
    async with Scheduler.connect(url, settings, on_demand=True, read_only=True) as scheduler:
        hosts = (await scheduler.hosts.list(limit=MAX_HOSTS)).items
        for resources in islice(dict.fromkeys(tuple(one.items()) for one in _candidates(hosts)), MAX_TRIED):
            if await _fits(scheduler, dict(resources)):
                return FirstRequest(dict(resources), True)
    return FirstRequest({}, bool(hosts))


def _candidates(hosts: Sequence[HostView]) -> Iterator[dict[str, int]]:
    """Yield small requests: of two classes that a host has free, and then of each of the two alone."""
    for host in hosts:
        free = dict[str, int]()
        for name, slot in sorted(host.slots.items(), key=lambda one: "/" in one[0]):
            if slot.free >= smallest(slot) > 0:
                free.setdefault(split_slot(name)[1], smallest(slot))
        if free and host.alive and host.status is HostStatus.ENABLED:
            chosen = sorted(free, key=lambda name: (name not in COMMON, name))[:2]
            yield {name: free[name] for name in chosen}
            yield from ({name: free[name]} for name in chosen)


async def _fits(scheduler: Scheduler, resources: dict[str, int]) -> bool:
    """Return whether a request would be placed now: aggregates, limits or a quota may be against it."""
    try:
        await scheduler.select(Request(resources, claim=False))
    except RedschedError:
        return False
    return True


def smallest(slot: SlotView) -> int:
    """Return the smallest amount that a slot can give: min_unit, rounded up to a whole step; 0 if there is none."""
    found = -(-slot.min_unit // slot.step_size) * slot.step_size
    return found if found <= slot.max_unit else 0


async def _hosts(url: str, settings: Settings) -> Sequence[HostView]:
    async with Scheduler.connect(url, settings, on_demand=True, read_only=True) as scheduler:
        return (await scheduler.hosts.list(limit=MAX_HOSTS)).items


def ask(url: str) -> dict[str, Any]:
    """Return the API's JSON response, which may be a problem; {} while the API does not respond."""
    try:
        with urllib.request.urlopen(_local(url), timeout=ASK_TIMEOUT_S) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as problem:
        with problem:
            return dict(json.load(problem))
    except OSError:
        return {}


def _local(url: str) -> str:
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
