"""The sweeper's loops: work that cannot be done yet neither delays other work nor slows down requests."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from redsched.model import ClaimStatus, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.cells import Cell
from redsched.settings import Settings
from redsched.store.commands.claims import ClaimCommands
from tests.support.builders.cells import claim_on, make_due, new_epoch, open_host, raw_client


@pytest.fixture
async def scheduler(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler that sweeps only on demand."""
    async with Scheduler.connect(clean_store, Settings(tick_s=600)) as opened:
        await opened.init()
        await open_host(cell_of(opened).store)
        await opened.explain(Request({"VCPU": 1}))
        yield opened


def cell_of(scheduler: Scheduler) -> Cell:
    return scheduler.cells.named("c1")


async def test_claims_that_cannot_be_ended_are_not_sent_with_every_refusal_until_their_host_attests(
    scheduler: Scheduler, clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, sent, real = cell_of(scheduler).store, list[int](), ClaimCommands.reconcile

    async def reconcile(self: ClaimCommands, ids: Any, objects: Any = ()) -> int:
        sent.append(len(ids))
        return await real(self, ids, objects)

    monkeypatch.setattr(ClaimCommands, "reconcile", reconcile)
    await claim_on(cell, "a")
    epoch = await new_epoch(cell)
    async with raw_client(clean_store) as raw:
        await make_due(raw, cell, "a")
    for _ in range(3):
        await scheduler.explain(Request({"VCPU": 1}))
    assert sent == [1]
    await cell.hosts.attest("h1", epoch)
    async with raw_client(clean_store) as raw:
        await make_due(raw, cell, "a")
    await scheduler.explain(Request({"VCPU": 1}))
    assert sent == [1, 1]
    assert (await cell.claims.read(["a"]))["a"].state is ClaimStatus.ENDED


async def test_a_chore_that_stays_due_although_it_is_done_keeps_no_other_from_its_turn(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redsched.scheduler.background.reconciler.BATCH", 1)
    due_claims, asked = scheduler.tasks["c1"].reconciler, list[str]()

    async def do(claim_id: str, claim: object) -> None:
        asked.append(claim_id)

    monkeypatch.setattr(due_claims, "_reconcile", do)
    cell = cell_of(scheduler).store
    async with raw_client(cell._cell.url) as raw:
        await raw.zadd(cell.keys.reconcile, {"a": 1, "b": 2})
    await due_claims.run_once()
    assert asked == ["a", "b"]
