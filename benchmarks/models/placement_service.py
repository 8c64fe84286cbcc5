"""One central service with a generation for each resource provider: OpenStack Placement.

A scheduler asks the service for candidates. The service reads all providers from the store and returns those that fit.
The scheduler weighs them and claims the best; the service reads that provider again, checks the capacity, and writes
the allocation if the provider's generation has not changed since (compare and swap), up to 10 times as Placement's
`allocation_conflict_retry_count`. If the provider is full meanwhile, the scheduler tries its next candidate, as Nova
does; after a conflict, it repeats the call, up to 4 times as Nova's client. Nova pauses for up to a few seconds before
it does; here it does not.

Redis replaces the SQL database: a pipeline of HGETALL for the query of candidates, one script for the update of the
generation and the insertion. Both are faster than SQL, which favours this model. There are as many processes of the
service as schedulers, up to the number of cores; each writes one allocation at a time, as a WSGI process with one
thread does, and so conflicts with other processes only. Nova's second read, of the candidates' host state, is left out.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from os import cpu_count
from typing import Any

from benchmarks.models.model import Model, Outcome, Scheduler
from benchmarks.models.published import redis_client
from benchmarks.models.rpc import Caller, Message, serving
from benchmarks.models.views import HostView, ranked, rng_of
from benchmarks.models.work import CLASSES, Ask, Setup

PROVIDER, ALLOCATION = "benchmark:provider:", "benchmark:allocation:"
MAX_CANDIDATES = 1000
"""Nova's `max_placement_results`."""
MAX_WRITES = 10
MAX_CALLS = 4

WRITE = """
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return 0 end
redis.call('HINCRBY', KEYS[1], 'generation', 1)
for i = 3, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], 'used.' .. ARGV[i], ARGV[i + 1]) end
redis.call('HSET', KEYS[2], 'provider', ARGV[2], unpack(ARGV, 3))
return 1
"""
"""UPDATE resource_providers SET generation = generation + 1 WHERE generation = ..., and INSERT INTO allocations."""


async def prepare(setup: Setup) -> None:
    """Create a provider for each host."""
    async with redis_client(setup) as client:
        pipe = client.pipeline(transaction=False)
        for spec in setup.hosts:
            inventory = {f"capacity.{kind}": amount for kind, amount in spec.capacity.items()}
            used = {f"used.{kind}": 0 for kind in CLASSES}
            pipe.hset(PROVIDER + spec.name, mapping={"generation": 0, **inventory, **used})
        await pipe.execute()


def capacity_left(provider: Mapping[str, str], kind: str) -> int:
    """Return what is free of a class, by a provider's fields."""
    return int(provider[f"capacity.{kind}"]) - int(provider[f"used.{kind}"])


def fits(provider: Mapping[str, str], amounts: Mapping[str, int]) -> bool:
    """Return whether a provider has room."""
    return all(amount <= capacity_left(provider, kind) for kind, amount in amounts.items())


class PlacementService:
    """The service: it keeps nothing in memory."""

    def __init__(self, client: Any, setup: Setup) -> None:
        self._client, self._database_s = client, setup.database_s
        self._hosts = [spec.name for spec in setup.hosts]
        self._writing = asyncio.Lock()
        self._write = client.register_script(WRITE)

    async def handle(self, message: Message) -> Message:
        """Answer `candidates` (GET /allocation_candidates) and `allocate` (PUT /allocations/{consumer})."""
        if message["op"] == "candidates":
            return {"candidates": await self.candidates(message["amounts"])}
        async with self._writing:
            return await self.allocate(message["claim_id"], message["host"], message["amounts"])

    async def candidates(self, amounts: Mapping[str, int]) -> dict[str, dict[str, list[int]]]:
        """Return the providers that fit, with capacity and usage of each class."""
        pipe = self._client.pipeline(transaction=False)
        for host in self._hosts:
            pipe.hgetall(PROVIDER + host)
        found = zip(self._hosts, await pipe.execute(), strict=True)
        if self._database_s:
            await asyncio.sleep(self._database_s)
        fitting = [(host, provider) for host, provider in found if fits(provider, amounts)]
        return {host: _summary(provider) for host, provider in fitting[:MAX_CANDIDATES]}

    async def allocate(self, claim_id: str, host: str, amounts: Mapping[str, int]) -> Message:
        """Write an allocation. Replies `ok`, `full` or `conflict`, with the number of conflicts met."""
        for conflicts in range(MAX_WRITES):
            provider = await self._client.hgetall(PROVIDER + host)
            if not fits(provider, amounts):
                return {"outcome": "full", "conflicts": conflicts}
            pairs = [part for pair in amounts.items() for part in pair]
            keys = [PROVIDER + host, ALLOCATION + claim_id]
            if await self._write(keys=keys, args=[provider["generation"], host, *pairs]):
                return {"outcome": "ok", "conflicts": conflicts}
        return {"outcome": "conflict", "conflicts": MAX_WRITES}


def _summary(provider: Mapping[str, str]) -> dict[str, list[int]]:
    return {kind: [int(provider[f"capacity.{kind}"]), int(provider[f"used.{kind}"])] for kind in CLASSES}


@contextlib.asynccontextmanager
async def serve(setup: Setup, number: int) -> AsyncIterator[None]:
    """Run one process of the service."""
    async with redis_client(setup) as client:
        service = PlacementService(client, setup)
        async with serving(setup.service_socket(number), service.handle):
            yield


def services(setup: Setup) -> int:
    """Return the number of processes of the service."""
    return min(setup.schedulers, cpu_count() or 1)


class PlacementScheduler:
    """A scheduler that claims through the service."""

    def __init__(self, setup: Setup, number: int, service: Caller, hosts: Caller) -> None:
        self._service, self._hosts = service, hosts
        self._rng, self._pick_from = rng_of(setup, number), setup.pick_from

    async def place(self, ask: Ask) -> Outcome:
        """Ask for candidates and claim the first that can be claimed, best first."""
        found = (await self._service.call("candidates", amounts=ask.amounts))["candidates"]
        views = [_view(host, summary) for host, summary in found.items()]
        calls = lost = 0
        for view in ranked(views, ask.amounts, self._rng, self._pick_from, MAX_CANDIDATES):
            for _ in range(MAX_CALLS):
                calls += 1
                reply = await self._service.call("allocate", claim_id=ask.claim_id, host=view.name, amounts=ask.amounts)
                lost += reply["conflicts"] + (reply["outcome"] == "full")
                if reply["outcome"] == "ok":
                    return Outcome(view.name, calls - 1, lost)
                if reply["outcome"] == "full":
                    break
        return Outcome("", max(0, calls - 1), lost)


def _view(host: str, summary: Mapping[str, list[int]]) -> HostView:
    capacity, used = ({kind: pair[at] for kind, pair in summary.items()} for at in (0, 1))
    return HostView(host, capacity, used)


@contextlib.asynccontextmanager
async def connect(setup: Setup, number: int, hosts: Caller) -> AsyncIterator[Scheduler]:
    """Open a scheduler."""
    async with Caller.connect(setup.service_socket(number % services(setup))) as service:
        yield PlacementScheduler(setup, number, service, hosts)


MODEL = Model(
    "placement",
    "a central service, claims by compare-and-swap of generations (OpenStack Placement)",
    connect,
    hosts_decide=False,
    prepare=prepare,
    serving=serve,
    services=services,
)
