"""Schedulers in separate operating-system processes, which start at a barrier: a race that one loop cannot show.

The processes are forked once (`tests.support.processes.forks`) and then play any number of jobs.

A job is a coroutine function of an importable module, called as `job(racer, argument)` in every process, with a
scheduler that has caught up. `racer.gate()` is the barrier; `racer.hear` and `racer.say` talk to the neighbours.
"""

import asyncio
import os
import signal
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from typing import Any

import structlog
import uvloop

from redsched.cache.updater import ReplicaUpdater
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from tests.support.builders.cells import PATIENT
from tests.support.processes.forks import FORKS

ANSWER_TIMEOUT_S = 180.0
"""The timeout for starting eight processes on a busy machine."""


@dataclass(frozen=True, slots=True)
class Order:
    """The job of one process."""

    job: "Job"
    url: str
    settings: dict[str, Any]
    argument: Any


class Racer:
    """One process as its job sees it."""

    def __init__(self, number: int, scheduler: Scheduler, efforts: list[Effort], lines: "_Lines") -> None:
        self.number = number
        self.scheduler = scheduler
        self.efforts = efforts
        """The effort (calls, retries, duration) of each selection, in the order in which they ended."""
        self._lines = lines

    @property
    def updater(self) -> ReplicaUpdater:
        """The updater of the replica that this process decides on."""
        return updater_of(self.scheduler)

    async def gate(self) -> None:
        """Wait until every process that plays this job has called this."""
        await asyncio.to_thread(self._lines.barrier.wait, ANSWER_TIMEOUT_S)

    async def say(self, word: Any) -> None:
        """Send a message to the next process of the ring."""
        await asyncio.to_thread(self._lines.following.send, word)

    async def hear(self) -> Any:
        """Return the message of the previous process of the ring. Raises TimeoutError."""
        return await _hear(self._lines.former)

    async def tell_parent(self, word: Any) -> None:
        """Send a message to the test."""
        await asyncio.to_thread(self._lines.parent.send, word)

    async def hear_parent(self) -> Any:
        """Return the message of the test. Raises TimeoutError."""
        return await _hear(self._lines.parent)


Job = Callable[[Racer, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class _Lines:
    parent: Connection
    former: Connection
    following: Connection
    barrier: Barrier


class Racers:
    """The processes, as the test sees them."""

    def __init__(self, processes: Sequence[BaseProcess], lines: Sequence[Connection], barrier: Barrier) -> None:
        self._processes = processes
        self._lines = lines
        self._barrier = barrier

    def __len__(self) -> int:
        return len(self._processes)

    async def play(self, job: Job, url: str, argument: Any = None, **settings: Any) -> list[Any]:
        """Play one job in all processes; return their results. Raises AssertionError with a job's traceback."""
        self._barrier.reset()
        for number in range(len(self)):
            self.begin(number, job, url, argument, **settings)
        # Read all results before one fails the test: an unread result would be taken for the next job's.
        results = await asyncio.gather(*(self.result(number) for number in range(len(self))), return_exceptions=True)
        for one in results:
            if isinstance(one, BaseException):
                raise one
        return results

    def begin(self, number: int, job: Job, url: str, argument: Any = None, **settings: Any) -> None:
        """Start a job in one process; such a job must not use the gate."""
        while self._lines[number].poll():
            self._lines[number].recv()  # leftovers of a job that its test abandoned
        self._lines[number].send(Order(job, url, settings, argument))

    async def result(self, number: int) -> Any:
        """Return the result of a process's job. Raises AssertionError with its traceback."""
        failed, answer = await _hear(self._lines[number])
        assert not failed, f"process {number}: {answer}"
        return answer

    def say(self, number: int, word: Any) -> None:
        """Send a message to a process's job."""
        self._lines[number].send(word)

    async def hear(self, number: int) -> Any:
        """Return a message of a process's job. Raises TimeoutError."""
        return await _hear(self._lines[number])

    def pause(self, number: int) -> None:
        """Freeze a process."""
        os.kill(self._pid(number), signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Resume a frozen process."""
        os.kill(self._pid(number), signal.SIGCONT)

    def _pid(self, number: int) -> int:
        pid = self._processes[number].pid
        assert pid is not None
        return pid


@contextmanager
def racers(count: int) -> Iterator[Racers]:
    """Start processes, and end them afterwards, whatever state they are in."""
    barrier = FORKS.Barrier(count)
    parents = [FORKS.Pipe() for _ in range(count)]
    ring = [FORKS.Pipe(duplex=False) for _ in range(count)]
    processes = [
        FORKS.Process(
            target=_serve,
            args=(number, _Lines(parents[number][1], ring[number - 1][0], ring[number][1], barrier)),
            daemon=True,
        )
        for number in range(count)
    ]
    try:
        for process in processes:
            process.start()
        yield Racers(processes, [ours for ours, _ in parents], barrier)
    finally:
        for process in processes:
            process.kill()
            process.join()
            process.close()
        for one in (*parents, *ring):
            for end in one:
                end.close()


def updater_of(scheduler: Scheduler) -> ReplicaUpdater:
    """Return the replica updater of a scheduler's first cell."""
    return next(iter(scheduler.cells)).updater


def _serve(number: int, lines: _Lines) -> None:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    while True:
        order = lines.parent.recv()
        try:
            answer = (False, uvloop.run(_play(number, lines, order)))
        except BaseException:
            lines.barrier.abort()
            answer = (True, traceback.format_exc())
        lines.parent.send(answer)


async def _play(number: int, lines: _Lines, order: Order) -> Any:
    efforts: list[Effort] = []
    async with Scheduler.connect(
        order.url, Settings(**{**PATIENT, **order.settings}), observe=efforts.append
    ) as scheduler:
        return await order.job(Racer(number, scheduler, efforts, lines), order.argument)


async def _hear(line: Connection) -> Any:
    if not await asyncio.to_thread(line.poll, ANSWER_TIMEOUT_S):
        raise TimeoutError(f"nothing was said for {ANSWER_TIMEOUT_S:g} s")
    return line.recv()
