"""Background work yields to the event loop, however many claims there are: measured in lines of Python, not in time.

A trace counts each line of redsched that runs, and the clock of `redsched.pacing` is that count, so a slice is a number
of lines. The tests limit the largest number of lines between two turns of the loop. Code that handles all claims at
once exceeds that limit.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from redsched import pacing
from redsched.errors import NoValidHost
from redsched.model import Candidate, Group, GroupPolicy, Quota, ReasonCount, Request, ServerGroup
from redsched.model.filters import ClaimFilter
from redsched.model.records.audit import Problem
from redsched.model.validation import MAX_AMOUNT
from redsched.operate.audit.audit import repair_replica
from redsched.operate.audit.ids import audit_ids
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.replies import ClaimCall, Member
from redsched.store.embedded.server import PrivateServer
from tests.support.builders.cells import raw_client, report_of
from tests.support.builders.placements import Snapshot, held_claim, restore, snapshot
from tests.support.builders.played import UNHURRIED

HOSTS, CLAIMS, GROUPS, DUE = 40, 100, 400, 1500
LINES_PER_S = 200_000
"""So a slice of 5 ms is 1000 lines."""
MAX_LINES = 4600 if sys.version_info < (3, 12) else 5200
"""A slice, and the work on one page of claims or a few hosts. Code that handles all claims at once exceeds it. From
Python 3.12 on, comprehensions count as loops do: a line for each item."""
QUIET = Settings(check_s=0.0, events_keep_s=0.0, tick_s=3600.0, poll_s=60.0)
PATIENT = QUIET.model_copy(update={"select_timeout_s": 600.0})
"""For a selection that takes seconds because its lines are counted."""

OWN = str(Path(pacing.__file__).parent)

ALL = ClaimFilter(cell="c1")

Work = Callable[[Scheduler], Awaitable[object]]


class Lines:
    """Counts lines, and the largest number of lines between two turns of the loop."""

    def __init__(self) -> None:
        self.lines = self.most = self._before = 0
        self._loop = asyncio.get_running_loop()
        self._turn: asyncio.Handle | None = None

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        """Count the lines of a call, if it is one of ours. Calls include each time that a coroutine continues."""
        if not frame.f_code.co_filename.startswith(OWN):
            return None
        if self._turn is None:
            self._turn = self._loop.call_soon(self.turn)
        return self._count

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        """Called for each line, so it does nothing else. None leaves it in place for the next one."""
        if event == "line":
            self.lines += 1

    def turn(self) -> None:
        """Record the lines since the last turn of the loop. The next line asks for the next turn."""
        self.most = max(self.most, self.lines - self._before)
        self._before = self.lines
        self._turn = None

    def stop(self) -> None:
        """Record the lines of the last turn."""
        if self._turn is not None:
            self._turn.cancel()
        self.turn()


async def lines_of(work: Awaitable[object], monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Await the work and count its lines."""
    counted, before = Lines(), sys.gettrace()
    monkeypatch.setattr(pacing, "clock", lambda: counted.lines / LINES_PER_S)

    async def traced() -> None:
        await work

    sys.settrace(counted.trace)
    try:
        await asyncio.create_task(traced())
    finally:
        sys.settrace(before)
        counted.stop()
    return counted


async def fill(cell: CellStore) -> None:
    """Create hosts with many claims each, half of them under a project's quota, and server groups, a quarter in use."""
    for number in range(GROUPS):
        await cell.declared.put_group(ServerGroup(f"g{number}", GroupPolicy.SOFT_ANTI_AFFINITY))
    for number in range(HOSTS):
        name = f"h{number}"
        said = await cell.hosts.report(report_of(name, VCPU=10_000))
        held = [
            held_claim(f"{name}-{one}", f"{said.epoch}.1", project="web" if one % 2 else "db", group=f"g{one}")
            for one in range(CLAIMS)
        ]
        await cell.hosts.attest(name, said.epoch, held=held)


async def make_due(scheduler: Scheduler) -> None:
    """Place claims with a lease of 1 ms, so that the next sweep finds all of them due."""
    [cell] = scheduler.cells
    clock = await cell.store.tick()
    for first in range(0, DUE, 50):
        members = tuple(Member(f"due-{first + one}", (Candidate("h0", {"VCPU": 1}),)) for one in range(50))
        await cell.store.claims.place(
            ClaimCall(members, clock.epoch, clock.now_ms, clock.seq, "", fresh=True, lease_ms=1)
        )


async def record(scheduler: Scheduler) -> None:
    """Record all changes in the event log."""
    [cell] = scheduler.cells
    await Recorder(cell.store, Settings()).record()


WORKS: dict[str, Work] = {
    "audit": lambda scheduler: scheduler.audit(),
    "repair": lambda scheduler: scheduler.repair(),
    "replica": lambda scheduler: repair_replica(next(iter(scheduler.cells))),
    "record": record,
    "export": lambda scheduler: scheduler.export(),
    "usage": lambda scheduler: scheduler.usage(),
    "sweep": lambda scheduler: scheduler.tasks["c1"].sweeper.sweep(),
    "select by filter": lambda scheduler: scheduler.bulk.release(ALL, dry_run=True, limit=HOSTS * CLAIMS),
    "renew by filter": lambda scheduler: scheduler.bulk.renew(ALL, lease_s=60, limit=1000),
}


@dataclass(frozen=True, slots=True)
class Filled:
    """A server, and a snapshot of its filled store."""

    url: str
    full: Snapshot


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    """Fill a store once. The embedded server suffices: this process does the same work on every server."""
    with PrivateServer.start() as server:
        yield Filled(server.url, asyncio.run(full_store(server.url)))


async def full_store(url: str) -> Snapshot:
    async with Scheduler.connect(url, QUIET) as scheduler, raw_client(url) as raw:
        await scheduler.init()
        cell = next(iter(scheduler.cells)).store
        await raw.hset(cell.keys.meta, mapping=UNHURRIED)  # a later restore must not count as a clock jump
        await fill(cell)
        await scheduler.quotas.put(Quota("db", {"claims": MAX_AMOUNT}))
        return await snapshot(raw)


@pytest.mark.parametrize("name", WORKS)
async def test_no_turn_of_the_loop_is_longer_for_more_claims(
    name: str, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_client(filled.url) as raw:
        await restore(raw, filled.full)
    async with Scheduler.connect(filled.url, QUIET) as scheduler:
        counted = await counted_on(scheduler, name, monkeypatch)
    assert counted.lines > 3 * MAX_LINES, "too little work to say anything"
    assert counted.most <= MAX_LINES


async def test_no_turn_of_the_loop_is_longer_for_more_ids_in_two_cells(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second cell has claims under an eighth of the ids."""
    async with raw_client(filled.url) as raw:
        await restore(raw, filled.full)
    async with Scheduler.connect(filled.url, QUIET.model_copy(update={"cells": ("c1", "c2")})) as scheduler:
        first, second = scheduler.cells
        said = await second.store.hosts.report(report_of("other", VCPU=10_000))
        held = [held_claim(f"h{one % HOSTS}-{one // HOSTS}", f"{said.epoch}.1") for one in range(HOSTS * CLAIMS // 8)]
        await second.store.hosts.attest("other", said.epoch, held=held)
        found = list[Problem]()

        async def work() -> None:
            found.extend(await audit_ids(first, scheduler.cells))

        counted = await lines_of(work(), monkeypatch)
    assert len(found) == len(held)
    assert counted.lines > 3 * MAX_LINES, "too little work to say anything"
    assert counted.most <= MAX_LINES


GPU = "CUSTOM_GPU_MILLI"
PAIR = Request(groups=(Group("a", {GPU: 600}), Group("b", {GPU: 700})))
"""Each group fits a GPU of every host, and only together they fit none, so that each host has to be searched."""


async def test_no_turn_of_the_loop_is_longer_for_a_refusal_by_more_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts are only in the replica, as every one of them is different and has to be searched."""
    with PrivateServer.start() as server:
        async with Scheduler.connect(server.url, PATIENT) as scheduler:
            await scheduler.init()
            columns = next(iter(scheduler.cells)).updater.columns
            for number in range(1500):
                columns.put(f"h{number}", gpu_host(columns.epoch, number))
            with pytest.raises(NoValidHost):  # leave out what is done only once, or once for the hosts
                await scheduler.select(Request({"VCPU": 1}))
            refused = list[NoValidHost]()

            async def work() -> None:
                with pytest.raises(NoValidHost) as caught:
                    await scheduler.select(PAIR)
                refused.append(caught.value)

            counted = await lines_of(work(), monkeypatch)
    assert refused[0].facts.reasons == (ReasonCount("pools", 1500),)
    assert refused[0].facts.nearest[0].changes
    assert counted.lines > 3 * MAX_LINES, "too little work to say anything"
    assert counted.most <= MAX_LINES


def gpu_host(epoch: str, number: int) -> dict[str, str]:
    """Return a host with two GPUs, one of them nearly full, with other amounts than every other host."""
    fields = {"version": "1", "epoch": epoch, "status": "enabled", "alive": "1"}
    for pool, claimed in (("gpu0", number % 300), ("gpu1", 500 + number // 300)):
        fields |= {f"pool.{pool}": "/", f"capacity.{pool}/{GPU}": "1000", f"claimed.{pool}/{GPU}": str(claimed)}
    return fields


async def counted_on(scheduler: Scheduler, name: str, monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Count the lines of one kind of work on the filled store."""
    await WORKS[name](scheduler)  # leave out what is done only once in a process
    if name in ("sweep", "record"):
        await make_due(scheduler)
    return await lines_of(WORKS[name](scheduler), monkeypatch)
