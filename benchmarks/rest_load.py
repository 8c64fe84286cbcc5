"""One client process of the throughput benchmark: repeats a request over REST on several connections for some time."""

import asyncio
import itertools
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

import uvloop

from benchmarks.claim_work import AMOUNTS, HELD_S, cpu_of
from benchmarks.rest import Connection, connections


@dataclass(frozen=True, slots=True)
class Work:
    """A request with one of several bodies, the status of its response, and the number of claims that it makes."""

    name: str
    method: str
    path: str
    bodies: tuple[bytes, ...]
    status: int
    claims: int


def _select(name: str, count: int) -> Work:
    asked = [{"resources": amounts, "lease_s": HELD_S, "count": count} for amounts in AMOUNTS]
    return Work(name, "POST", "/v1/selections", tuple(json.dumps(one).encode() for one in asked), 201, count)


SELECT = _select("REST", 1)
SELECT_100 = _select("REST, count: 100", 100)
HEALTH = Work("GET /healthz", "GET", "/healthz", (b"",), 200, 0)
"""The cheapest request, to compare with: it has no body and does not use the store."""


@dataclass(frozen=True, slots=True)
class Load:
    """The work: `at` and `until` are Unix times, so that all processes begin and end together."""

    work: Work
    url: str
    workers: Sequence[int]
    connections: int
    at: float
    until: float


@dataclass(slots=True)
class Done:
    """Seconds of each expected response, the other statuses, this process's processor time, and its end."""

    latencies_s: list[float]
    others: list[int]
    cpu_s: float
    ended: float


def ready(_: int) -> int:
    """Do nothing: the parent calls this first, so that starting and importing are finished."""
    return os.getpid()


def drive(load: Load) -> Done:
    """Run the load."""
    return uvloop.run(_drive(load))


async def _drive(load: Load) -> Done:
    done = Done([], [], 0.0, 0.0)
    bodies = itertools.cycle(load.work.bodies)
    async with connections(load.url, load.connections, load.workers) as clients:
        await asyncio.sleep(max(0.0, load.at - time.time()))
        before = cpu_of(os.getpid())
        await asyncio.gather(*(_client(one, load, bodies, done) for one in clients))
        done.ended, done.cpu_s = time.time(), cpu_of(os.getpid()) - before
    return done


async def _client(connection: Connection, load: Load, bodies: "itertools.cycle[bytes]", done: Done) -> None:
    work = load.work
    while time.time() < load.until:
        started = time.perf_counter()
        answer = await connection.request(work.method, work.path, next(bodies))
        if answer.status == work.status:
            done.latencies_s.append(time.perf_counter() - started)
        else:
            done.others.append(answer.status)
