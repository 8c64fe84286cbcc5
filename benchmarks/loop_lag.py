"""How long background work of a scheduler holds up its own event loop: the largest delay of a timer, while it goes on.

    python -m benchmarks.loop_lag [--claims 200000] [--per-host 100] [--due 20000] [--json]

A synthetic cell on a private store: hosts with that many active claims, one in ten of them of a project with a quota,
and as many claims more that fall due. Then, one after the other, in one scheduler's process: an audit, an export, a
repair (an audit that finds nothing), the sums of usage and a sweep that ends all that is due. A timer of a millisecond
runs beside each of them; how much later than that it comes is what a request would have waited, and the tick of the
store's clock. Ends with exit code 1 when an audit finds a problem, or a claim is missing.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

import uvloop

from benchmarks.claim_work import HELD_S
from redsched import pacing, tasks
from redsched.model import Candidate, ClaimStatus, HostReport, Inventory, Quota
from redsched.names import MAX_AMOUNT
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store import CellStore, ClaimCall, HeldClaim, Member, Store
from redsched.store.server import PrivateServer

TIMER_S = 0.001
LIMITED = "limited"
AMOUNTS = {"VCPU": 1, "MEMORY_MB": 1024}
ROOMY = {"VCPU": Inventory(10**7), "MEMORY_MB": Inventory(10**9)}
AT_ONCE = 20
CLAIMS_AT_ONCE = 100
SETTINGS = Settings(log_level="warning", check_s=0.0, events_keep_s=0.0, tick_s=3600.0)
"""Nothing goes on by itself: each row is one piece of work."""


@dataclass(frozen=True, slots=True)
class Row:
    """One piece of work, and the delays of the timer meanwhile."""

    work: str
    seconds: float
    largest_ms: float
    p99_ms: float
    largest_cpu_ms: float
    """Of this thread's processor time between two turns of the timer: other processes do not count in it."""


class Timer:
    """A context manager: a timer that notes how late it comes."""

    async def __aenter__(self) -> "Timer":
        self._late_s: list[float] = []
        self._cpu_s = 0.0
        self._began = time.perf_counter()
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(TIMER_S * 2)
        self.seconds = time.perf_counter() - self._began
        await tasks.end(self._task)

    def row(self, work: str) -> Row:
        late = sorted(self._late_s)
        return Row(work, self.seconds, late[-1] * 1e3, late[len(late) * 99 // 100] * 1e3, self._cpu_s * 1e3)

    async def _run(self) -> None:
        while True:
            before, cpu_s = time.perf_counter(), time.thread_time()
            await asyncio.sleep(TIMER_S)
            self._cpu_s = max(self._cpu_s, time.thread_time() - cpu_s)
            self._late_s.append(time.perf_counter() - before - TIMER_S)


async def fill(cell: CellStore, claims: int, per_host: int) -> list[str]:
    """Report hosts that attest so many active claims; their names."""
    await cell.init()
    names = [f"host-{number:06}" for number in range(-(-claims // per_host))]
    for first in range(0, len(names), AT_ONCE):
        await tasks.together(_open(cell, name, per_host) for name in names[first : first + AT_ONCE])
    return names


async def _open(cell: CellStore, name: str, claims: int) -> None:
    said = await cell.report(HostReport(name, ROOMY, lease_s=HELD_S))
    held = [_held(f"{name}-{number}", f"{said.epoch}.1", "web" if number % 10 else LIMITED) for number in range(claims)]
    await cell.attest(name, said.epoch, held=held)


def _held(claim_id: str, token: str, project: str) -> HeldClaim:
    record = {"project": project} | {f"amount.{name}": str(amount) for name, amount in AMOUNTS.items()}
    return HeldClaim(claim_id, token, token, token, ClaimStatus.ACTIVE, record)


async def make_due(cell: CellStore, names: list[str], count: int) -> None:
    """Make claims that no host takes up, and whose leases are about to run out."""
    clock = await cell.tick()
    for first in range(0, count, CLAIMS_AT_ONCE):
        members = [
            Member(f"due-{first}-{one}", (Candidate(names[(first + one) % len(names)], AMOUNTS),))
            for one in range(min(CLAIMS_AT_ONCE, count - first))
        ]
        for some in members:
            await cell.claim(ClaimCall((some,), clock.epoch, clock.now_ms, clock.seq, "", fresh=True, lease_ms=1))


async def measure(url: str, given: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """All rows, and what is wrong."""
    async with Store.connect(url, SETTINGS) as store:
        names = await fill(store.cell("c1"), given.claims, given.per_host)
    rows, wrong = list[Row](), list[str]()
    async with Scheduler.connect(url, SETTINGS) as scheduler:
        pacing.leave_alone()  # as the API's processes do

        async def row(work: str, do: Callable[[], Awaitable[object]]) -> object:
            async with Timer() as timer:
                found = await do()
            rows.append(timer.row(work))
            return found

        await row("count a quota", lambda: scheduler.quotas.put(Quota(LIMITED, {"claims": MAX_AMOUNT})))
        report = await row("audit", scheduler.audit)
        wrong += [str(one) for one in report.problems[:5]]  # type: ignore[attr-defined]
        archive = await row("export", scheduler.export)
        if len(archive.claims) != len(names) * given.per_host:  # type: ignore[attr-defined]
            wrong.append(f"{len(archive.claims)} claims were exported")  # type: ignore[attr-defined]
        del archive
        await row("repair", scheduler.repair)
        await row("usage", scheduler.usage)
        [cell] = scheduler._cells
        await make_due(cell.store, names, given.due)
        await cell.mirror.catch_up()
        await row("sweep", cell.sweeper.sweep)
        if left := len(await cell.store.deadlines()):
            wrong.append(f"{left} claims that are due were left")
    return rows, wrong


def main() -> None:
    """Fill a private store, measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--claims", type=int, default=200_000, help="active claims (default: %(default)s)")
    parser.add_argument("--per-host", type=int, default=100, help="of them on each host (default: %(default)s)")
    parser.add_argument("--due", type=int, default=20_000, help="claims that fall due (default: %(default)s)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with PrivateServer.start() as server:
        rows, wrong = uvloop.run(measure(server.url, given))
    if given.json:
        print(json.dumps({"claims": given.claims, "rows": [asdict(one) for one in rows], "wrong": wrong}))
    else:
        print(f"{'work':<14} {'seconds':>9} {'largest delay ms':>17} {'p99 ms':>8} {'processor ms':>13}")
        for one in rows:
            print(
                f"{one.work:<14} {one.seconds:9.1f} {one.largest_ms:17.1f} {one.p99_ms:8.1f} {one.largest_cpu_ms:13.1f}"
            )
        print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
