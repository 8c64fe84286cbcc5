"""One run: a private store, the host process, the processes of a service, and the schedulers' processes."""

import asyncio
import contextlib
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from benchmarks.claim_work import cpu_of
from benchmarks.models.figures import Row, make_row
from benchmarks.models.hosts import Hosts
from benchmarks.models.registry import MODELS
from benchmarks.models.rpc import Caller
from benchmarks.models.scheduling import Done, schedule
from benchmarks.models.work import Setup
from redsched.store.embedded.server import PrivateServer

START_TIMEOUT_S = 120.0
END_TIMEOUT_S = 10.0


def context() -> ForkServerContext:
    """Return a way to start processes that have imported everything already."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload([__name__])
    return found


def run(setup: Setup, server: Path | None = None) -> Row:
    """Run one model on a store of its own, and return its figures."""
    with PrivateServer.start(server) as store, TemporaryDirectory(prefix="models-") as folder:
        return run_on(replace(setup, store_url=store.url, folder=folder), store.pid)


def run_on(setup: Setup, store_pid: int) -> Row:
    """Run one model on an empty store, whose process has this id."""
    model = MODELS[setup.model]
    uvloop.run(model.prepare(setup))
    starting = context()
    hosts = starting.Process(target=host_process, args=(setup,))
    services = [starting.Process(target=service_process, args=(setup, one)) for one in range(model.services(setup))]
    with _running([hosts, *services]), ProcessPoolExecutor(setup.schedulers, mp_context=starting) as pool:
        pids = {"store": [store_pid], "service": [one.pid or 0 for one in services]}
        return uvloop.run(_measure(setup, pool, pids))


@contextlib.contextmanager
def _running(processes: Sequence[BaseProcess]) -> Iterator[None]:
    try:
        for one in processes:
            one.start()
        yield
    finally:
        for one in processes:
            if one.pid is not None:
                one.terminate()
                one.join(END_TIMEOUT_S)


async def _measure(setup: Setup, pool: ProcessPoolExecutor, pids: dict[str, list[int]]) -> Row:
    loop = asyncio.get_running_loop()
    async with Caller.connect(setup.hosts_socket) as hosts:
        working = [loop.run_in_executor(pool, scheduler_process, setup, one) for one in range(setup.schedulers)]
        async with asyncio.timeout(START_TIMEOUT_S):
            await _started(hosts, working)
        before = _spent(pids)
        done = await asyncio.gather(*working)
        cpu_s = {role: spent - before[role] for role, spent in _spent(pids).items() if pids[role]}
        books = await hosts.call("books")
    cpu_s["schedulers"] = sum(one.cpu_s for one in done)
    return make_row(setup, [record for one in done for record in one.records], books, cpu_s)


async def _started(hosts: Caller, working: "Sequence[asyncio.Future[Done]]") -> None:
    """Wait until all schedulers are connected. Raises what ended one of them."""
    start = asyncio.ensure_future(hosts.call("start"))
    waiting: list[asyncio.Future[Any]] = [start, *working]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in working:
        if one.done() and not start.done():
            one.result()
    await start


def _spent(pids: dict[str, list[int]]) -> dict[str, float]:
    return {role: sum(cpu_of(pid) for pid in some) for role, some in pids.items()}


def scheduler_process(setup: Setup, number: int) -> Done:
    """Be one scheduler."""
    return uvloop.run(schedule(setup, MODELS[setup.model], number))


def host_process(setup: Setup) -> None:
    """Be all hosts, until ended."""
    uvloop.run(_until_ended(setup))


async def _until_ended(setup: Setup) -> None:
    model = MODELS[setup.model]
    async with model.publishing(setup) as publisher:
        hosts = Hosts(setup, publisher, checks=model.hosts_decide)
        async with hosts.serving(setup.hosts_socket):
            await _terminated()


def service_process(setup: Setup, number: int) -> None:
    """Be one process of a service, until ended."""
    uvloop.run(_serve_until_ended(setup, number))


async def _serve_until_ended(setup: Setup, number: int) -> None:
    serving = MODELS[setup.model].serving
    assert serving is not None
    async with serving(setup, number):
        await _terminated()


async def _terminated() -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
