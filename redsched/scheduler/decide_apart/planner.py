"""The planner of a scheduler: forks of its process that make the decisions that take too long for its event loop.

    the event loop                                  a fork
      read_at_head: fork ------------------------->   decides on the columns as they were at that moment
      other requests                                  no sockets, no event loop, no store
      read the pipe to its end <-------------------   writes the result, and ends

A fork has the columns, the caches and the plugins of its parent, for the cost of copying page tables. There are two
lanes, each with one fork at a time: all jobs are first tried for QUICK_S, so that those that take half a second do not
wait for those that take all of `plan_limit_s`. A few jobs may wait, and a project or caller has at most half of these.
"""

import asyncio
import contextlib
import gc
import os
import pickle
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, NoReturn, TypeVar

from redsched import aio, logs, origin
from redsched.errors import PlannerBusy, RedschedError, Unavailable
from redsched.forks import detach, signals_held_back

T = TypeVar("T")

QUICK_S = 1.0
MAX_WAITING = 16
"""The most jobs that wait or run. Their callers wait no longer than for any selection."""
WALL_FACTOR = 10
"""How much longer than its limit of work a fork may take on a busy machine, before it is taken for stuck."""
MAX_GROWTH_BYTES = 1024 * 1024 * 1024
"""How much memory a fork may use beyond its parent's."""
REAP_PAUSE_S = 0.005

log = logs.get_logger(__name__)

Job = Callable[[float], Any]
"""Does the work in up to so many seconds. Runs in the fork; what it returns or raises is pickled."""
Fork = Callable[[Callable[[], "Forked"]], Awaitable["Forked"]]
"""Calls a function that forks, at a moment when the columns are as the job needs them."""


class Forked:
    """A fork that runs a job."""

    def __init__(self, job: Job, limit_s: float, any_growth: bool = False) -> None:
        """Fork; with `any_growth`, without MAX_GROWTH_BYTES. Raises Unavailable if no process can be started."""
        end, start = os.pipe()
        self._pipe = os.fdopen(end, "rb", buffering=0)
        self._is_read = self._has_ended = False
        try:
            self.pid = _fork(partial(job, limit_s), start, any_growth)
        except OSError as error:
            self._pipe.close()
            log.warning("planner not forked", reason=error.strerror)
            raise Unavailable("no process could be started to decide on the request: try again") from error
        finally:
            os.close(start)

    async def result(self) -> Any:
        """Return what the job returned or raised. Raises EOFError if the fork ended without."""
        if self._pipe.closed:
            raise EOFError  # `stop` has ended it
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        self._is_read = True
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._pipe)
        try:
            return pickle.loads(await reader.read())
        finally:
            transport.close()

    async def end(self) -> None:
        """End the process, and wait until it has ended."""
        if not self._is_read:  # else the transport closes it
            self._pipe.close()
        if self._has_ended:
            return  # another process may have its number by now
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG) == (0, 0):  # noqa: ASYNC110, ASYNC222 - it was killed, and the call does not block
                await asyncio.sleep(REAP_PAUSE_S)
        self._has_ended = True


class Planner:
    """Runs jobs in forks. `limit_s` is how long each may take.

    `is_alone`: the process serves nobody else, so that jobs, and what is read for them, may take any memory, and all of
    their time at once.
    """

    def __init__(self, limit_s: float, is_alone: bool = False) -> None:
        self._limit_s = limit_s
        self.is_alone = is_alone
        self._quick, self._slow = asyncio.Lock(), asyncio.Lock()
        self._jobs: Counter[tuple[str, str]] = Counter()
        """The jobs that wait or run, by project and caller: a caller may have many projects."""
        self._running: set[Forked] = set()

    @property
    def pids(self) -> list[int]:
        """The process ids of the forks that run."""
        return [one.pid for one in self._running]

    async def run(self, job: Job, project: str, fork: Fork, is_cut: Callable[[Any], bool]) -> Any:
        """Return what a job returns; again in the slow lane if the first result `is_cut`: it lacked time.

        Raises what the job raises, PlannerBusy, and Unavailable if the fork died.
        """
        with self.admitted(project):
            return await self.run_admitted(job, fork, is_cut)

    @contextlib.contextmanager
    def admitted(self, project: str) -> Iterator[None]:
        """Count as a job inside the context, before what it needs is read. Raises PlannerBusy."""
        asker = (project, origin.current().actor)
        if self._is_full(*asker):
            raise PlannerBusy(
                f"{self._jobs.total()} requests that take long to decide wait already: try again, or ask for less"
            )
        self._jobs[asker] += 1
        try:
            yield
        finally:
            self._jobs[asker] -= 1
            self._jobs += Counter()  # without zeros

    async def run_admitted(self, job: Job, fork: Fork, is_cut: Callable[[Any], bool]) -> Any:
        """Do what `run` does, inside `admitted`."""
        quick_s = self._limit_s if self.is_alone else min(QUICK_S, self._limit_s)
        async with self._quick:
            found = await self._forked(job, quick_s, fork)
        if is_cut(found) and self._limit_s > quick_s:
            async with self._slow:
                found = await self._forked(job, self._limit_s, fork)
        if isinstance(found, RedschedError):
            raise found
        return found

    def _is_full(self, project: str, actor: str) -> bool:
        of_project = sum(count for (one, _), count in self._jobs.items() if one == project)
        of_actor = sum(count for (_, one), count in self._jobs.items() if one and one == actor)
        return self._jobs.total() >= MAX_WAITING or max(of_project, of_actor) >= MAX_WAITING // 2

    async def stop(self) -> None:
        """End all forks. Their jobs fail."""
        await self._end(set(self._running))

    async def _forked(self, job: Job, limit_s: float, fork: Fork) -> Any:
        begun = set[Forked]()

        def begin() -> Forked:
            one = Forked(job, limit_s, self.is_alone)
            begun.add(one)
            self._running.add(one)
            return one

        try:
            one = await fork(begin)
            async with asyncio.timeout(None if self.is_alone else limit_s * WALL_FACTOR + 1):
                return await one.result()
        except (TimeoutError, EOFError, pickle.UnpicklingError) as error:
            log.warning("planner ended", pids=sorted(one.pid for one in begun), problem=repr(error))
            raise Unavailable("the process that decided on the request has ended: ask for less, or try again") from None
        finally:  # also a fork whose caller was cancelled before it got it
            await aio.finish(self._end(begun))

    async def _end(self, forks: set[Forked]) -> None:
        await aio.gather(one.end() for one in forks)
        self._running -= forks


def _fork(job: Callable[[], Any], pipe: int, any_growth: bool) -> int:
    """Return the process id of a fork that runs the job."""
    parent = os.getpid()
    with signals_held_back():
        pid = os.fork()
        if pid == 0:
            _run(job, pipe, parent, any_growth)
    return pid


def _run(job: Callable[[], Any], pipe: int, parent: int, any_growth: bool) -> NoReturn:
    """Run a job in the fork, and end it."""
    try:
        detach("redsched-planner", parent)
        gc.disable()  # it lives for seconds, and what it shares with its parent would be copied
        os.closerange(3, pipe)
        os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
        if not any_growth:
            _limit_memory()
        try:
            found = job()
        except RedschedError as error:
            found = error
        data = memoryview(pickle.dumps(found))
        with contextlib.suppress(BrokenPipeError):  # the parent no longer waits, and is about to end this process
            while data:
                data = data[os.write(pipe, data) :]
    except BaseException:  # nothing of the parent's stack may run in the fork
        os.write(2, traceback.format_exc().encode())  # what `sys.stderr` has may be closed
    finally:
        os._exit(0)


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + MAX_GROWTH_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def planner(limit_s: float) -> Planner | None:
    """Return a planner; None where processes cannot be forked, or nothing may take that long."""
    return Planner(limit_s) if limit_s and hasattr(os, "fork") else None
