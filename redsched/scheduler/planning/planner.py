"""The planner of a scheduler: a process that it starts at the first decision that takes too long for its event loop.

Jobs are done one after the other. A few may wait, and a project has at most half of these, so that one caller's hard
requests leave room for others. If the process dies, the job that it was doing fails, and the next one starts another.
A process that is idle for IDLE_S, or that has grown too much, is ended to free its replica.
"""

import asyncio
import contextlib
import sys
from collections import Counter
from typing import Any

import psutil

from redsched import aio, logs
from redsched.decide import Decision, Explanation
from redsched.errors import RedschedError, TooHard, Unavailable
from redsched.model import Request
from redsched.model.record import record
from redsched.scheduler.planning.frames import LENGTH, DecideJob, ExplainJob, Job, Setup, packed, unpacked
from redsched.settings import Settings

MAX_WAITING = 8
"""The most jobs that wait or run: each takes up to `plan_limit_s`, and its caller waits for all of those before it."""
IDLE_S = 60.0
START_S = 30.0
"""What starting a planner, with its replica, may take beyond the job itself."""
MAX_GROWTH_BYTES = 512 * 1024 * 1024
"""How much larger than after its first job a planner may get."""

log = logs.get_logger(__name__)


@record
class Planned:
    """A planner's decision, with the epoch and seq of its columns; without places, why there are none."""

    decision: Decision
    epoch: str
    seq: int
    settled: bool
    explanation: Explanation | None


class PlannerBusy(Unavailable):
    """Other hard requests wait already."""

    problem, title = "planner-busy", "Other hard requests wait"


class Planner:
    """Decides in a process of its own."""

    def __init__(self, url: str, settings: Settings) -> None:
        self._setup = Setup(url, settings)
        self._limit_s = settings.plan_limit_s
        self._turn = asyncio.Lock()
        self._waiting: Counter[str] = Counter()
        """The jobs that wait or run, by project."""
        self._process: asyncio.subprocess.Process | None = None
        self._size_bytes = 0
        self._idle: asyncio.TimerHandle | None = None
        self._ending = aio.BackgroundTasks("redsched-planner-end")
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process id; None while there is no process."""
        return None if self._process is None else self._process.pid

    async def decide(self, cell: str, request: Request, limit_s: float) -> Planned:
        """Decide on a request in one cell, on columns at the head of its feed, in `limit_s` of work at most.

        Raises TooHard, PlannerBusy, NotFound, Unavailable, InvalidRequest.
        """
        found: Planned = await self._do(DecideJob(cell, request, limit_s), request.project)
        return found

    async def explain(self, request: Request, hosts: tuple[str, ...]) -> Explanation:
        """Explain a request over all cells. Raises as `Scheduler.explain` does, and PlannerBusy."""
        found: Explanation = await self._do(ExplainJob(request, hosts), request.project)
        return found

    async def stop(self) -> None:
        """End the process. Jobs in it fail."""
        self._is_closed = True
        await self._end()

    async def _do(self, job: Job, project: str) -> Any:
        self._enter(project)
        try:
            async with self._turn:
                answer = await self._run(job)
        finally:
            self._waiting[project] -= 1
        if isinstance(answer, RedschedError):
            raise answer
        return answer

    def _enter(self, project: str) -> None:
        """Count a job. Raises PlannerBusy if too many wait."""
        if self._waiting.total() >= MAX_WAITING or self._waiting[project] >= MAX_WAITING // 2:
            raise PlannerBusy(
                f"{self._waiting.total()} requests that take long to decide wait already: try again, or ask for less"
            )
        self._waiting[project] += 1

    async def _run(self, job: Job) -> Any:
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(START_S + self._limit_s):
                process = await self._started()
                answer = await _ask(process, job)
        except TimeoutError:
            await self._end()
            raise TooHard(f"deciding took longer than {self._limit_s:g} s: ask for less in one request") from None
        except (OSError, EOFError) as error:
            await self._end()
            log.warning("planner ended", problem=repr(error))
            raise Unavailable("the process that decides on hard requests has ended: try again") from None
        except asyncio.CancelledError:
            # The process is still at it: the next job must not wait for that, nor get its answer.
            await self._end()
            raise
        await self._end_if_large()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle)
        return answer

    async def _started(self) -> asyncio.subprocess.Process:
        if self._is_closed:
            raise Unavailable("this scheduler is closing")
        if self._process is None or self._process.returncode is not None:
            self._size_bytes = 0
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "redsched.scheduler.planning.process"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            log.info("planner started", pid=self._process.pid)
            assert self._process.stdin is not None
            self._process.stdin.write(packed(self._setup))
        return self._process

    async def _end_if_large(self) -> None:
        size = 0
        if self._process is not None:
            with contextlib.suppress(psutil.Error):
                size = psutil.Process(self._process.pid).memory_info().rss
        self._size_bytes = self._size_bytes or size
        if size > self._size_bytes + MAX_GROWTH_BYTES:
            await self._end()

    def _end_idle(self) -> None:
        if not self._turn.locked():
            self._ending.begin(self._end())

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _ask(process: asyncio.subprocess.Process, job: Job) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(packed(job))
    await process.stdin.drain()
    (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
    return unpacked(await process.stdout.readexactly(size))
