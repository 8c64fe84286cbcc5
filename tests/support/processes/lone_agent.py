"""An agent in a process of its own, which can be killed: forked, so that it need not import redsched again."""

import asyncio
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from redsched.agent.run import run
from redsched.model import HostReport
from redsched.settings import Settings
from tests.support.processes.forks import FORKS

BEGIN_S = 120.0


class LoneAgent:
    """A process with an agent for one host."""

    def __init__(self, settings: Settings, url: str, host: HostReport, journal: Path) -> None:
        self._ready, its = FORKS.Pipe(duplex=False)
        self._process: ForkServerProcess = FORKS.Process(target=_work, args=(settings, url, host, journal, its))
        self._process.start()
        its.close()

    def wait_until_ready(self) -> None:
        """Wait until its host is open. Fails the test if it ended before."""
        assert self._ready.poll(BEGIN_S), "the agent is not ready"
        try:
            self._ready.recv()
        except EOFError:
            raise AssertionError("the agent ended before it was ready") from None

    def kill(self) -> None:
        """Kill it without a chance to clean up, as a power cut would."""
        self._process.kill()
        self._process.join()
        self._ready.close()


def _work(settings: Settings, url: str, host: HostReport, journal: Path, ready: Connection) -> None:
    asyncio.run(_run(settings, url, host, journal, ready))


async def _run(settings: Settings, url: str, host: HostReport, journal: Path, ready: Connection) -> None:
    opened = asyncio.Event()
    agent = asyncio.create_task(run(settings, url, [host], journal, opened))
    opening = asyncio.create_task(opened.wait())
    await asyncio.wait([agent, opening], return_when=asyncio.FIRST_COMPLETED)
    if opened.is_set():
        ready.send("ready")
    await agent
