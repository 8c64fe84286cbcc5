"""redsched over REST, as `benchmarks.placement` uses it: `redsched up` with hosts that report once."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvloop

from benchmarks.claim_work import AT_ONCE, HELD_S
from benchmarks.placement.cycles import Claimed, ServiceError
from benchmarks.placement.json_client import Answer, JsonClient
from benchmarks.running import Up
from redsched.model import HostReport, Inventory
from redsched.scheduler import Scheduler
from redsched.settings import Settings

FIRST = "h00000"


class RedschedClient:
    """One client's connection."""

    def __init__(self, client: JsonClient) -> None:
        self._client = client

    def claim(self, resource_class: str, amount: int) -> Claimed:
        """Select one place."""
        body = {"resources": {resource_class: amount}, "lease_s": HELD_S}
        answer = _checked(self._client.request("POST", "/v1/selections", body), 201, 409)
        return Claimed(answer.body["selections"][0]["claim_id"] if answer.status == 201 else "", 0)

    def release(self, claim_id: str) -> None:
        """Release a claim that no agent has accepted, which frees it at once."""
        _checked(self._client.request("DELETE", f"/v1/claims/{claim_id}"), 200, 204)


def _checked(answer: Answer, *expected: int) -> Answer:
    if answer.status not in expected:
        raise ServiceError(f"redsched answered {answer.status}, not {expected[0]}: {json.dumps(answer.body)}")
    return answer


class RedschedService:
    """`redsched up` with a private store, which ends with it."""

    name = "redsched"
    many, few = "CUSTOM_BENCHMARK_MANY", "CUSTOM_BENCHMARK_FEW"

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._url = ""

    @contextmanager
    def client(self, number: int) -> Iterator[RedschedClient]:  # noqa: ARG002 - as Service has it
        """Open a connection."""
        with JsonClient(self._url) as client:
            yield RedschedClient(client)

    @contextmanager
    def fleet(self, providers: int, capacity: int, places: int) -> Iterator[None]:
        """Start redsched and report the hosts, the first with `places` of the class `few` too."""
        reports = []
        for number in range(providers):
            few = {} if number else {self.few: Inventory(places)}
            inventories = {self.many: Inventory(capacity), **few}
            reports.append(HostReport(f"h{number:05d}", inventories, lease_s=HELD_S))
        with Up(["--workers", str(self._workers)]) as up:
            uvloop.run(_report(up.store, reports))
            self._url = up.url
            yield

    def used(self, resource_class: str) -> int:
        """Return what is claimed of the first host."""
        with JsonClient(self._url) as client:
            found: Any = _checked(client.request("GET", f"/v1/hosts/{FIRST}"), 200).body["slots"]
        return int(found[resource_class]["claimed"])


async def _report(url: str, reports: list[HostReport]) -> None:
    async with Scheduler.connect(url, Settings(log_level="warning")) as scheduler:
        for first in range(0, len(reports), AT_ONCE):
            await asyncio.gather(*(scheduler.hosts.report(one) for one in reports[first : first + AT_ONCE]))
