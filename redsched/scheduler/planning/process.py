"""A planner: a process that decides on what takes too long for the event loop of the scheduler that started it.

It has a replica of its own, writes nothing to the store, and does one job after the other. It ends when its standard
input ends, also in the middle of a job: that is when its scheduler has ended.
"""

import asyncio
import gc
import os
import sys
import threading
from dataclasses import replace
from random import Random
from typing import Any, BinaryIO

from redsched import logs
from redsched.decide.work_limit import TooMuchWork, WorkLimit
from redsched.errors import RedschedError
from redsched.scheduler.cells import Cells
from redsched.scheduler.planning.frames import LENGTH, DecideJob, ExplainJob, Job, Setup, packed, renewed, unpacked
from redsched.scheduler.planning.limits import too_hard
from redsched.scheduler.planning.planner import Planned
from redsched.scheduler.scheduler import Scheduler
from redsched.scheduler.selection.references import refuse_undeclared, undeclared
from redsched.scheduler.selection.refusal import PendingRefusal
from redsched.scheduler.wiring import Components, plugins_of
from redsched.store.store import Store


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not get between the answers
    jobs = sys.stdin.buffer
    setup: Setup = _read(jobs)
    logs.configure(setup.settings.log_level)
    asyncio.run(_serve(setup, jobs, answers))


async def _serve(setup: Setup, jobs: BinaryIO, answers: BinaryIO) -> None:
    waiting: asyncio.Queue[Job] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_follow, args=(jobs, loop, waiting), daemon=True).start()
    rng = Random()
    async with Store.connect(setup.url, setup.settings, read_only=True) as store:
        components = Components(store, setup.settings, plugins_of(setup.settings))
        async with components.on_demand():
            gc.freeze()
            while True:
                answers.write(packed(await _answer(components, await waiting.get(), rng)))
                answers.flush()


def _follow(jobs: BinaryIO, loop: asyncio.AbstractEventLoop, waiting: "asyncio.Queue[Job]") -> None:
    while job := _read(jobs):
        loop.call_soon_threadsafe(waiting.put_nowait, job)


def _read(jobs: BinaryIO) -> Any:
    """Return the next object. Ends the process if there is none."""
    head = jobs.read(LENGTH.size)
    data = jobs.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""
    if not data:
        os._exit(0)
    return unpacked(data)


async def _answer(components: Components, job: Job, rng: Random) -> Any:
    """Return the result of a job, or the error that it raised."""
    job = replace(job, request=renewed(job.request))
    try:
        if isinstance(job, ExplainJob):
            return await Scheduler(components).explain(job.request, *job.hosts)
        return await _planned(components.cells, job, rng)
    except RedschedError as error:
        return error


async def _planned(cells: Cells, job: DecideJob, rng: Random) -> Planned:
    """Decide on a request. Raises TooHard, NotFound, Unavailable, InvalidRequest."""
    cell, limit = cells.named(job.cell), WorkLimit(job.limit_s, job.limit_s)

    def decide() -> Planned | str:
        if what := undeclared(job.request, [cell]):
            return what
        updater = cell.updater
        with limit.working():
            decision = cell.decider.decide(job.request, rng)
        if decision.places:
            return Planned(decision, updater.epoch, updater.seq, updater.settled, None)
        why = PendingRefusal(cell, job.request, limit, decision.reasons).found_at_once()
        return Planned(decision, updater.epoch, updater.seq, updater.settled, why)

    try:
        found = await cell.read_at_head(decide)
    except TooMuchWork as cut:
        raise too_hard(job.request, len(cell.updater.columns), cut) from None
    if isinstance(found, str):
        await refuse_undeclared(found, cells)
        raise AssertionError("refuse_undeclared raises")
    return found


if __name__ == "__main__":
    main()
