"""The server's own rate for claim.lua: calls built beforehand, sent in pipelines over one connection. No deciding."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from random import Random
from typing import Any, NoReturn

import redis

from benchmarks.claim_work import Measured, cpu_of, requests
from redsched.model import Candidate, Request
from redsched.origin import Origin
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.scripts import load_all
from redsched.store.codec.claim_fields import carried_by
from redsched.store.codec.replies import ClaimCall, Clock, Member
from redsched.store.codec.wire import Reply
from redsched.store.embedded.server import PrivateServer

CELL = "c1"


class _Recorder:
    """Replaces a script client: keeps the call of a typed method instead of sending it."""

    command: tuple[Any, ...] = ()
    waits = False

    async def run(
        self,
        name: str,
        keys: Sequence[str],
        arguments: Sequence[str | int],
        durable: bool = False,  # noqa: ARG002 - as the Runner has it
        origins: Sequence[Origin] = (),
    ) -> Reply:
        script = load_all()[name]
        self.command = ("EVALSHA", script.sha, len(keys), *keys, *script.with_origin(arguments, origins))
        raise _Recorded


class _Recorded(Exception):
    pass


async def build(
    hosts: Sequence[str],
    clock: Clock,
    count: int,
    project: str = "",
    *,
    members: int = 1,
    name: str = "raw",
    made: Sequence[Request] = (),
) -> list[tuple[Any, ...]]:
    """Return `count` calls as a scheduler would send them: each member with as many candidates, in an order of its own.

    With several members, all of one call have candidates among the same hosts. `name` distinguishes the ids of builds.
    `made`: the requests to use in turn, instead of those of the benchmark.
    """
    recorder, rng, commands = _Recorder(), Random(0), list[tuple[Any, ...]]()
    candidates = min(len(hosts), Settings().candidates)
    cell = CellStore(CELL, "", recorder, None, None)  # type: ignore[arg-type]
    for number, request in zip(range(count), itertools.cycle(made) if made else requests(), strict=False):
        chosen = rng.sample(hosts, min(len(hosts), candidates + members - 1))
        placed = [chosen[first : first + candidates] for first in range(members)]
        try:
            claim_id = f"{name}-{project}{clock.seq}-{number}"
            await cell.claims.place(_call(request, claim_id, placed, clock, project))
        except _Recorded:
            commands.append(recorder.command)
    return commands


def _call(request: Request, claim_id: str, placed: Sequence[Sequence[str]], clock: Clock, project: str) -> ClaimCall:
    members = tuple(
        Member(f"{claim_id}.{number}", tuple(Candidate(host, request.resources) for host in hosts))
        for number, hosts in enumerate(placed)
    )
    lease_ms = request.lease_s * 1000
    decided = (clock.epoch, clock.now_ms, clock.seq)
    about: dict[str, Any] = {"project": project, "carried": carried_by(request)}
    return ClaimCall(members, *decided, request.digest(), fresh=True, lease_ms=lease_ms, **about)


def usec(client: Any) -> int:
    """Return the time in microseconds that the server has spent in its scripts."""
    return int(client.info("commandstats").get("cmdstat_evalsha", {"usec": 0})["usec"])


def measure(server: PrivateServer, hosts: Sequence[str], clock: Clock, count: int, batch: int) -> Measured:
    """Send all calls; the time includes sending and reading. Exits if the server refuses one."""
    commands = asyncio.run(build(hosts, clock, count))
    with redis.Redis(unix_socket_path=str(server.socket), protocol=2, decode_responses=True) as client:
        for script in load_all().values():
            client.script_load(script.text)
        connection = client.connection_pool.get_connection()
        packed = [connection.pack_commands(commands[at : at + batch]) for at in range(0, count, batch)]
        before, cpu_s, started = usec(client), cpu_of(server.pid), time.perf_counter()
        outcomes = [exchange(connection, some, min(batch, count - at * batch)) for at, some in enumerate(packed)]
        seconds = time.perf_counter() - started
        spent = {"store": (cpu_of(server.pid) - cpu_s) / count * 1e6, "script": (usec(client) - before) / count}
        client.connection_pool.release(connection)
    if sum(one.count("OK") for one in outcomes) < count:
        refused()
    return Measured(len(hosts), f"claim.lua alone, {batch} in a pipeline", count, seconds, cpu_us=spent)


def refused() -> NoReturn:
    """Exit: a refusal is different work from what the table shows."""
    raise SystemExit("the server did not place every claim: the figures would mean nothing")


def exchange(connection: Any, packed: Any, count: int) -> list[str]:
    """Send packed calls and return their outcomes."""
    connection.send_packed_command(packed)
    return [connection.read_response()[0] for _ in range(count)]
