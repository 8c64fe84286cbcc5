"""How long the background work of a scheduler blocks its own event loop.

    python -m benchmarks.loop_lag [--claims 1000000] [--per-host 100] [--due 20000] [--json]

Fills a private store with hosts that have this many active claims: one in ten of a project with a quota, one in ten in
a server group, all with a request that the store keeps. Then runs one piece of work after the other in one scheduler's
process, together with a timer of one millisecond. A request, or the tick of the store's clock, would have waited for as
long as the timer is late.

    audit      all hosts and claims, the quota and the groups
    repair     an audit that finds nothing; it renews the retention of the requests
    replica    this scheduler's columns compared with the store
    export     the whole cell, into memory
    usage      the sums of all claims
    snapshot   the columns read again, as in a new epoch
    feed       reading the new claims
    sweep      ending all claims that are due
    record     writing their events to the event log
    drain      moving claims off a few hosts, in several sweeps

Ends with exit code 1 if an audit finds a problem, or a claim is missing.
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from benchmarks.claim_work import HELD_S
from redsched import aio, pacing
from redsched.model import Candidate, ClaimStatus, HostReport, HostStatus, Inventory, Quota, Request
from redsched.model.validation import MAX_AMOUNT
from redsched.operate.audit.audit import repair_replica
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import request_name
from redsched.store.codec.replies import ClaimCall, JournaledClaim, Member
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store

TIMER_S = 0.001
LIMITED = "limited"
AMOUNTS = {"VCPU": 1, "MEMORY_MB": 1024}
ROOMY = {"VCPU": Inventory(10**7), "MEMORY_MB": Inventory(10**9)}
GROUP_OF = 50
"""Members of a server group, each on a different host."""
AT_ONCE = 20
CLAIMS_AT_ONCE = 100
SETTINGS = Settings(
    log_level="warning", check_s=0.0, events_keep_s=0.0, tick_s=3600.0, poll_s=3600.0, catch_up_timeout_s=120.0
)
"""No background work: each row is one piece of work."""
DRAINED, SWEEPS = 5, 10


@dataclass(frozen=True, slots=True)
class Row:
    """One piece of work, and the delays of the timer during it."""

    work: str
    seconds: float
    largest_ms: float
    p99_ms: float
    largest_cpu_ms: float
    """Processor time of this thread between two turns of the timer: other processes are not included."""
    largest_gc_ms: float
    """The longest garbage collection, included in the above."""


class Timer:
    """A context manager: a timer that records its delays."""

    async def __aenter__(self) -> "Timer":
        self._gc_s = self._gc_began = 0.0
        gc.callbacks.append(self._collecting)
        self._late_s: list[float] = []
        self._cpu_s = 0.0
        self._began = time.perf_counter()
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(TIMER_S * 2)
        self.seconds = time.perf_counter() - self._began
        await aio.end(self._task)
        gc.callbacks.remove(self._collecting)

    def row(self, work: str) -> Row:
        late = sorted(self._late_s)
        p99_s = late[len(late) * 99 // 100]
        return Row(work, self.seconds, late[-1] * 1e3, p99_s * 1e3, self._cpu_s * 1e3, self._gc_s * 1e3)

    def _collecting(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = time.thread_time()
        else:
            self._gc_s = max(self._gc_s, time.thread_time() - self._gc_began)

    async def _run(self) -> None:
        while True:
            before, cpu_s = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TIMER_S)
            self._cpu_s = max(self._cpu_s, time.thread_time() - cpu_s)
            self._late_s.append(time.perf_counter() - before - TIMER_S)


async def fill(cell: CellStore, claims: int, per_host: int) -> list[str]:
    """Report hosts that attest this many active claims; return their names."""
    await cell.init()
    names = [f"host-{number:06}" for number in range(-(-claims // per_host))]
    for first in range(0, len(names), AT_ONCE):
        hosts = enumerate(names[first : first + AT_ONCE], first)
        await aio.gather(_open(cell, number, name, per_host) for number, name in hosts)
    return names


async def _open(cell: CellStore, number: int, name: str, claims: int) -> None:
    request = Request(AMOUNTS, consumer=name)
    await cell.texts.restore(request_name(request.digest()), request.canonical())
    said = await cell.hosts.report(HostReport(name, ROOMY, lease_s=HELD_S))
    held = [_held(number, name, one, f"{said.epoch}.1", request.digest()) for one in range(claims)]
    await cell.hosts.attest(name, said.epoch, held=held)


def _held(host: int, name: str, number: int, token: str, digest: str) -> JournaledClaim:
    record = {"project": "web" if number % 10 else LIMITED, "consumer": name, "digest": digest}
    if number % 10 == 1:
        record["group"] = f"group-{number}-{host // GROUP_OF}"
    record |= {f"amount.{slot}": str(amount) for slot, amount in AMOUNTS.items()}
    return JournaledClaim(f"{name}-{number}", token, token, token, ClaimStatus.ACTIVE, record)


async def make_due(cell: CellStore, names: list[str], count: int) -> None:
    """Make claims that no host takes up, and whose leases are about to expire."""
    clock = await cell.tick()
    for first in range(0, count, CLAIMS_AT_ONCE):
        members = [
            Member(f"due-{first}-{one}", (Candidate(names[(first + one) % len(names)], AMOUNTS),))
            for one in range(min(CLAIMS_AT_ONCE, count - first))
        ]
        for some in members:
            await cell.claims.place(
                ClaimCall((some,), clock.epoch, clock.now_ms, clock.seq, "", fresh=True, lease_ms=1)
            )


async def drain(cell: Cell, sweep: Callable[[], Awaitable[None]], names: list[str]) -> None:
    """Move claims off some hosts, as several sweeps do."""
    for name in names[:DRAINED]:
        await cell.store.hosts.set_status(name, HostStatus.DRAINING, move=True)
    for _ in range(SWEEPS):
        await sweep()


async def force_snapshot(cell: Cell) -> None:
    """Read all columns again."""
    cell.updater.force_snapshot()
    await cell.updater.catch_up()


async def measure(url: str, given: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Yield all rows; return the errors."""
    async with Store.connect(url, SETTINGS) as store:
        names = await fill(store.cell("c1"), given.claims, given.per_host)
    rows, wrong = list[Row](), list[str]()
    async with Scheduler.connect(url, SETTINGS) as scheduler:
        await scheduler.quotas.put(Quota(LIMITED, {"claims": MAX_AMOUNT}))
        [cell] = scheduler.cells
        sweep = scheduler.tasks[cell.name].sweeper.sweep
        pacing.freeze_existing_objects()  # like the API's processes

        async def row(work: str, do: Callable[[], Awaitable[object]]) -> Any:
            async with Timer() as timer:
                found = await do()
            rows.append(timer.row(work))
            print(rows[-1], file=sys.stderr)
            return found

        for work, do in (("audit", scheduler.audit), ("repair", scheduler.repair)):
            report = await row(work, do)
            wrong += [str(one) for one in report.problems[:5]]
        await row("replica", lambda: repair_replica(cell))
        archive = await row("export", scheduler.export)
        if len(archive.claims) != len(names) * given.per_host:
            wrong.append(f"{len(archive.claims)} claims were exported")
        del archive
        await row("usage", scheduler.usage)
        await row("snapshot", lambda: force_snapshot(cell))
        await make_due(cell.store, names, given.due)
        await row("feed", cell.updater.catch_up)
        await row("sweep", sweep)
        if left := len(await cell.store.due.deadlines()):
            wrong.append(f"{left} claims that are due were left")
        recorder = Recorder(cell.store, SETTINGS.model_copy(update={"events_keep_s": 3600.0}))
        if not await row("record", recorder.record):
            wrong.append("no event was recorded")
        await row("drain", lambda: drain(cell, sweep, names))
        if not await cell.store.due.deadlines():
            wrong.append("no claim was moved")
    return rows, wrong


def main() -> None:
    """Fill a private store, measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--claims", type=int, default=1_000_000, help="active claims (default: %(default)s)")
    parser.add_argument("--per-host", type=int, default=100, help="of them on each host (default: %(default)s)")
    parser.add_argument("--due", type=int, default=20_000, help="claims that fall due (default: %(default)s)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with PrivateServer.start() as server:
        rows, wrong = uvloop.run(measure(server.url, given))
    if given.json:
        print(json.dumps({"claims": given.claims, "rows": [asdict(one) for one in rows], "wrong": wrong}))
    else:
        print(f"{'work':<10} {'seconds':>9} {'largest delay ms':>17} {'p99 ms':>8} {'processor ms':>13} {'gc ms':>7}")
        for one in rows:
            delays = f"{one.largest_ms:17.1f} {one.p99_ms:8.1f} {one.largest_cpu_ms:13.1f} {one.largest_gc_ms:7.1f}"
            print(f"{one.work:<10} {one.seconds:9.1f} {delays}")
        print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
