"""One scheduler of a run: works on its requests, several at once, and records what became of each."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.models.model import Model, Scheduler
from benchmarks.models.rpc import Caller
from benchmarks.models.work import Ask, Setup


@dataclass(frozen=True, slots=True)
class Record:
    """One request. Times are of the monotonic clock, which all processes of a machine share.

    `host` is '' if it was refused. From `ended` on the place is surely the request's; the host has it at `on_host`.
    """

    ask: Ask
    host: str
    retries: int
    lost: int
    began: float
    ended: float
    on_host: float


@dataclass(slots=True)
class Done:
    """What one scheduler did, and its processor time."""

    records: list[Record] = field(default_factory=list)
    cpu_s: float = 0.0


async def schedule(setup: Setup, model: Model, number: int) -> Done:
    """Work on this scheduler's requests, from the moment when all schedulers are connected."""
    done = Done()
    async with Caller.connect(setup.hosts_socket) as hosts, model.connect(setup, number, hosts) as scheduler:
        await hosts.call("start")
        before, until = time.process_time(), time.monotonic() + setup.time_limit_s
        waiting = iter(setup.asks_of(number))
        workers = (_work(waiting, until, scheduler, hosts, model, done) for _ in range(setup.concurrency))
        await asyncio.gather(*workers)
        done.cpu_s = time.process_time() - before
    return done


async def _work(
    waiting: Iterator[Ask], until: float, scheduler: Scheduler, hosts: Caller, model: Model, done: Done
) -> None:
    """Place one request after the other. Delivering placed work to its host delays no further request."""
    deliveries = []
    for ask in waiting:
        if (began := time.monotonic()) > until:
            break
        outcome = await scheduler.place(ask)
        times = began, time.monotonic()
        record = Record(ask, outcome.host, outcome.retries, outcome.lost, *times, on_host=times[1])
        if outcome.host and not model.hosts_decide:
            deliveries.append(asyncio.create_task(_deliver(record, hosts, done)))
        else:
            done.records.append(record)
    await asyncio.gather(*deliveries)


async def _deliver(record: Record, hosts: Caller, done: Done) -> None:
    ask = record.ask
    await hosts.call("deliver", host=record.host, claim_id=ask.claim_id, amounts=ask.amounts)
    times = record.began, record.ended, time.monotonic()
    done.records.append(Record(ask, record.host, record.retries, record.lost, *times))
