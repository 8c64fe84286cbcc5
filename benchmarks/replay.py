"""Request tasks and release claims, over several connections that each take the next item of one list."""

import asyncio
import itertools
import json
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

from benchmarks.openb import Task
from benchmarks.rest import Answer, Connection

T = TypeVar("T")
Result = TypeVar("Result")
MAX_TRIES = 30
PAUSE_S = 0.2
AUDIT_TIMEOUT_S = 300.0
_BROKEN = (OSError, EOFError, TimeoutError, asyncio.IncompleteReadError)


@dataclass(slots=True)
class Asked:
    """A task and its result. `began` and `ended` order all of a replay's events; status 0: no response at all."""

    task: Task
    began: int
    ended: int = 0
    status: int = 0
    seconds: float = 0.0
    host: str = ""
    slots: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    tries: int = 0

    @property
    def placed(self) -> bool:
        """It has a host, now or from an attempt whose response was lost."""
        return self.status in (200, 201)

    @property
    def refused(self) -> bool:
        """It was refused because no host fits."""
        return self.status == 409


async def place(connections: Sequence[Connection], tasks: Iterable[Task], policy: str = "") -> list[Asked]:
    """Request each task once, in their order, until it is answered."""
    ticks = itertools.count(1)

    async def one(connection: Connection, task: Task) -> Asked:
        asked = Asked(task, next(ticks))
        started = time.perf_counter()
        answer = await _until_answered(connection, asked, task.body(policy))
        asked.seconds, asked.ended = time.perf_counter() - started, next(ticks)
        _note(asked, answer)
        return asked

    return await _shared(connections, tasks, one)


async def release(connections: Sequence[Connection], ids: Iterable[str]) -> list[int]:
    """Release claims; return the statuses."""

    async def one(connection: Connection, claim_id: str) -> int:
        return (await connection.request("DELETE", f"/v1/claims/{quote(claim_id)}")).status

    return await _shared(connections, ids, one)


async def _shared(
    connections: Sequence[Connection],
    objects: Iterable[T],
    act: Callable[[Connection, T], Awaitable[Result]],
) -> list[Result]:
    waiting, done = iter(objects), list[Result]()

    async def client(connection: Connection) -> None:
        for thing in waiting:
            done.append(await act(connection, thing))

    await asyncio.gather(*map(client, connections))
    return done


async def _until_answered(connection: Connection, asked: Asked, body: bytes) -> Answer:
    """201, 200 and 409 are results. Anything else is retried, which the id makes safe."""
    answer = Answer(0, b"{}")
    while asked.tries < MAX_TRIES and answer.status not in (200, 201, 409):
        if asked.tries:
            await asyncio.sleep(PAUSE_S)
        asked.tries += 1
        try:
            answer = await connection.request("POST", "/v1/selections", body)
        except _BROKEN:
            await connection.open_again()
    return answer


def _note(asked: Asked, answer: Answer) -> None:
    asked.status, said = answer.status, answer.json()
    if asked.placed:
        asked.host, asked.slots = said["selections"][0]["host"], said["selections"][0]["slots"]
    elif asked.refused:
        # Any other 409 would be a lost task: it has no reasons, and is shown as it is.
        asked.status = 409 if said["type"] == "/problems/no-valid-host" else 0
        asked.reasons = {one["reason"]: one["hosts"] for one in said.get("reasons", ())}


@dataclass(slots=True)
class Audits:
    """Run `redsched audit --json` repeatedly; keep each result in the order in which they ended."""

    command: Sequence[str]
    found: list[dict[str, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def once(self) -> None:
        """Run one audit in a thread, so that requests continue, and record its result."""
        done = await asyncio.to_thread(subprocess.run, self.command, capture_output=True, timeout=AUDIT_TIMEOUT_S)
        if not done.stdout:
            self.problems.append(f"audit: exit code {done.returncode}: {done.stderr.decode()[-300:]}")
            return
        said = json.loads(done.stdout)
        self.found.append({"hosts": said["hosts"], "claims": said["claims"], "problems": len(said["problems"])})
        self.problems += [f"audit: {one}" for one in said["problems"]]
        if done.returncode and not said["problems"]:
            self.problems.append(f"audit: exit code {done.returncode} without a problem")

    @asynccontextmanager
    async def meanwhile(self, pause_s: float) -> AsyncIterator[None]:
        """Audit for the duration of the block; wait for the last audit that began in it."""
        over = asyncio.Event()
        running = asyncio.create_task(self._until(over, pause_s))
        try:
            yield
        finally:
            over.set()
            await running

    async def _until(self, over: asyncio.Event, pause_s: float) -> None:
        while not over.is_set():
            await self.once()
            try:
                await asyncio.wait_for(over.wait(), pause_s)
            except TimeoutError:
                continue
