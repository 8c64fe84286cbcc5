"""One client process of the throughput benchmark: selects over REST on several connections for some time."""

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

BODIES = [json.dumps({"resources": amounts, "lease_s": HELD_S}).encode() for amounts in AMOUNTS]


@dataclass(frozen=True, slots=True)
class Load:
    """The work: `at` and `until` are Unix times, so that all processes begin and end together."""

    url: str
    workers: Sequence[int]
    connections: int
    at: float
    until: float


@dataclass(slots=True)
class Done:
    """Seconds of each 201, the other statuses, this process's processor time, and its end."""

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
    bodies = itertools.cycle(BODIES)
    async with connections(load.url, load.connections, load.workers) as clients:
        await asyncio.sleep(max(0.0, load.at - time.time()))
        before = cpu_of(os.getpid())
        await asyncio.gather(*(_client(one, load.until, bodies, done) for one in clients))
        done.ended, done.cpu_s = time.time(), cpu_of(os.getpid()) - before
    return done


async def _client(connection: Connection, until: float, bodies: "itertools.cycle[bytes]", done: Done) -> None:
    while time.time() < until:
        started = time.perf_counter()
        answer = await connection.request("POST", "/v1/selections", next(bodies))
        if answer.status == 201:
            done.latencies_s.append(time.perf_counter() - started)
        else:
            done.others.append(answer.status)
