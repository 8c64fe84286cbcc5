"""One scheduler process of `benchmarks.schedulers`: it claims its share of a fleet beside others, and counts."""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from benchmarks.claim_work import HELD_S
from redsched import logs
from redsched.errors import NoValidHost
from redsched.model import Request
from redsched.pacing import freeze_existing_objects
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply

SHAPES = ((1, 2048), (2, 8192), (4, 16_384), (8, 32_768))
"""VCPU and MEMORY_MB of the requests, of which each next one is drawn."""
TASKS = 4
"""Selections that one process has in flight."""
LAST = (8, 32_768)
"""The request that is repeated until the fleet is full."""
REFUSALS = 3
"""A process stops after this many refusals in a row."""
MAX_LAST = 2000


@dataclass(frozen=True, slots=True)
class Share:
    """What one process has to do."""

    url: str
    settings: Mapping[str, Any]
    claims: int
    seed: int


@dataclass(slots=True)
class Counts:
    """What one process counted while it placed its share; `refused` are the refusals until the fleet was full."""

    claims: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    passed_over: int = 0
    calls: int = 0
    further_rounds: int = 0
    refused_early: int = 0
    refused: int = 0


def serve(parent: Connection) -> None:
    """Do shares until None comes: say when ready, wait for a start, and send the counts; then fill, and send again."""
    logs.configure("error")  # each renewal of the fleet is a new epoch
    freeze_existing_objects()
    while (share := parent.recv()) is not None:
        uvloop.run(_compete(parent, share))


async def _compete(parent: Connection, share: Share) -> None:
    efforts, counts, rng = list[Effort](), Counts(), random.Random(share.seed)
    async with Scheduler.connect(share.url, Settings(**share.settings), observe=efforts.append) as scheduler:
        _count_passed_over(scheduler, counts)
        await _turn(parent)
        began, cpu_s = time.perf_counter(), time.process_time()
        waiting = iter([rng.choice(SHAPES) for _ in range(share.claims)])
        await asyncio.gather(*(_claim_all(scheduler, waiting, counts) for _ in range(TASKS)))
        counts.seconds, counts.cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
        counts.calls = sum(one.calls for one in efforts)
        counts.further_rounds = sum(one.retries for one in efforts)
        parent.send(counts)
        await _turn(parent)
        counts.refused = await _fill(scheduler)
        parent.send(counts)


async def _turn(parent: Connection) -> None:
    """Say that this process is ready, and wait until all are."""
    parent.send(None)
    await asyncio.to_thread(parent.recv)


def _count_passed_over(scheduler: Scheduler, counts: Counts) -> None:
    [cell] = scheduler.cells
    apply = cell.updater.apply_reply

    def counted(answer: ClaimReply) -> None:
        if answer.outcome is Outcome.OK:
            counts.passed_over += sum(one.candidate or 0 for one in answer.placed)
        else:
            counts.passed_over += len(answer.looked_at)
        apply(answer)

    cell.updater.apply_reply = counted  # type: ignore[method-assign]


def _request(shape: tuple[int, int]) -> Request:
    return Request({"VCPU": shape[0], "MEMORY_MB": shape[1]}, lease_s=HELD_S)


async def _claim_all(scheduler: Scheduler, waiting: Any, counts: Counts) -> None:
    for shape in waiting:
        try:
            await scheduler.select(_request(shape))
            counts.claims += 1
        except NoValidHost:
            counts.refused_early += 1


async def _fill(scheduler: Scheduler) -> int:
    """Claim until a request was refused a few times in a row; return the number of refusals."""
    refused = in_row = 0
    for _ in range(MAX_LAST):
        try:
            await scheduler.select(_request(LAST))
            in_row = 0
        except NoValidHost:
            refused, in_row = refused + 1, in_row + 1
            if in_row == REFUSALS:
                break
    return refused
