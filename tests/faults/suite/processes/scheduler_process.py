"""A scheduler process: a `Scheduler.connect` with traffic, which announces each call and then reports its result.

It starts with the state of a killed process of its name: its claims, and its requests without a known outcome.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, is_dataclass
from typing import Any

import pytest
import structlog

from redsched.cache.diff import describe
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import Unavailable
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.faults.suite.callers.owner import Owner
from tests.faults.suite.processes.speech import Ear, go_by, say, shift_clock
from tests.support.store_clock import go_by_stores


async def replicas(scheduler: Scheduler) -> None:
    """Report the columns of each cell."""
    say("replicas", cells={cell.name: await _replica(cell.updater) for cell in scheduler.cells})


async def _replica(updater: ReplicaUpdater) -> dict[str, Any]:
    """Return the columns of a replica that has caught up, object by object."""
    try:
        await updater.catch_up()
    except Unavailable as error:
        return {"problem": error.detail}
    columns = updater.columns
    hosts = {name: {key: _plain(value) for key, value in describe(columns, name).items()} for name in columns.names()}
    declared = {
        name: {key: _plain(value) for key, value in one.items()} for name, one in columns.declared.describe().items()
    }
    return {"epoch": columns.epoch, "seq": updater.seq, "hosts": hosts, "declared": declared}


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value if isinstance(value, bool | int | float | str) else str(value)


async def audit(scheduler: Scheduler) -> None:
    """Report the findings of redsched's own audit."""
    try:
        report = await scheduler.audit()
    except Unavailable as error:
        say("audit", problems=[error.detail])
        return
    say("audit", problems=[f"{one.invariant} {one.thing}: {one.detail}" for one in report.problems])


async def main() -> None:
    """Serve until the input ends."""
    ear = Ear()
    await ear.open()
    words = await ear.hear()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    shift_clock(words["clock_shift_s"])
    go_by_stores(pytest.MonkeyPatch())
    go_by(words["ways"])
    async with Scheduler.connect(words["url"], Settings(**words["settings"])) as scheduler:
        at_work = Owner(scheduler, words)
        orders: dict[str, Callable[[], Awaitable[None]]] = {
            "play": at_work.play,
            "rest": at_work.rest,
            "release": at_work.release,
            "replicas": lambda: replicas(scheduler),
            "audit": lambda: audit(scheduler),
        }
        say("ready")
        under_way = set[asyncio.Task[None]]()
        while True:
            order = orders[(await ear.hear())["do"]]()
            task = asyncio.ensure_future(order)
            under_way.add(task)
            task.add_done_callback(_ended)
            task.add_done_callback(under_way.discard)


def _ended(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        say("defect", error=repr(error))


if __name__ == "__main__":
    asyncio.run(main())
