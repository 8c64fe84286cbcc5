"""Fork the suite's processes from a process that has imported their modules, which takes most of a start.

It has also composed the scripts and found the plugins, once for all of them. Each process runs on uvloop, as those of
redsched do, and is a session of its own, with standard input, output and error created by the suite. The suite and the
nursery exchange messages over a socket: the name of a module with three descriptors in one direction, `started PID`
and `ended PID CODE` in the other.

The nursery does not use `tests.support.processes.forks`: its processes have the environment, in /proc too, of the
first test that needed it. So they lack the mark of the run by which leftovers are found, and a session and pipes of
their own.
"""

import asyncio
import importlib
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

ROOT = Path(__file__).parents[4]
MODULES = ("tests.faults.suite.processes.agent_process", "tests.faults.suite.processes.scheduler_process")
"""The modules to import in advance. `main` of such a module is the process."""
PRELOADED = "tests.support.processes.preloaded"
"""The last module to import: it does what each process would otherwise do again."""
LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class Forked:
    """A forked process."""

    pid: int
    code: asyncio.Future[int]

    @property
    def runs(self) -> bool:
        """Return whether it is running, as far as the nursery has reported."""
        return not self.code.done()

    async def ended(self) -> int:
        """Wait for its end; return its exit code, or the negative number of the signal that ended it."""
        return await asyncio.shield(self.code)

    def kill(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """The nursery as the suite sees it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._starting: deque[asyncio.Future[Forked]] = deque()
        self._forked: dict[int, Forked] = {}
        asyncio.get_running_loop().add_reader(line, self._hear)

    async def fork(self, module: str, descriptors: Sequence[int]) -> Forked:
        """Start a process that runs `main` of a module, on copies of descriptors as its input, output and error."""
        started: asyncio.Future[Forked] = asyncio.get_running_loop().create_future()
        self._starting.append(started)
        socket.send_fds(self._line, [module.encode()], descriptors)
        return await started

    def close(self) -> None:
        """Close the socket, which ends the nursery. Its processes continue."""
        asyncio.get_running_loop().remove_reader(self._line)
        self._line.close()

    def _hear(self) -> None:
        try:
            message = self._line.recv(LONGEST_MESSAGE)
        except ConnectionResetError:  # it ended without having read all requests
            message = b""
        if not message:
            return self._fail()
        what, *numbers = message.decode().split()
        pid = int(numbers[0])
        if what == "started":
            self._forked[pid] = Forked(pid, asyncio.get_running_loop().create_future())
            self._starting.popleft().set_result(self._forked[pid])
        else:
            self._forked.pop(pid).code.set_result(int(numbers[1]))
        return None

    def _fail(self) -> None:
        """Release all waiters when the nursery is gone."""
        asyncio.get_running_loop().remove_reader(self._line)
        waiting: list[asyncio.Future[Any]] = [*self._starting, *(forked.code for forked in self._forked.values())]
        for one in waiting:
            one.set_exception(OSError("the nursery has ended by itself"))


@asynccontextmanager
async def nursery() -> AsyncIterator[Nursery]:
    """Start a nursery, and end it afterwards. It also ends when the suite does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", __name__, str(its.fileno())]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, pass_fds=[its.fileno()], start_new_session=True
    )
    its.close()
    started = Nursery(ours)
    try:
        yield started
    finally:
        started.close()
        await process.wait()


def main() -> None:
    """Fork on request, and report each end, until the suite is gone."""
    line = socket.socket(fileno=int(sys.argv[1]))
    for module in (*MODULES, PRELOADED):
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, lambda *_: _tell_ends(line))
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, LONGEST_MESSAGE, 3)
        if not message:
            return
        # Report the end of a process only after its start.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = os.fork()
        if pid == 0:
            line.close()
            _be(message.decode(), descriptors)
        for one in descriptors:
            os.close(one)
        line.send(f"started {pid}".encode())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _be(module: str, descriptors: Sequence[int]) -> None:
    """Run a module's `main` in this process, and exit."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    os.setsid()
    for number, one in enumerate(descriptors):
        os.dup2(one, number)
        os.close(one)
    code = 1
    try:
        uvloop.run(importlib.import_module(module).main())
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tell_ends(line: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        line.send(f"ended {pid} {os.waitstatus_to_exitcode(status)}".encode())


if __name__ == "__main__":
    main()
