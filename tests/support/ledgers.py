"""Seeing to all that quotas have left to be done, however long it was put off, and whatever else is at it."""

from typing import Any

from redsched.scheduler import Scheduler
from redsched.store.keys import LedgerKeys
from tests.support.waiting import wait_until

WITHIN_S = 120.0


async def settle_all(scheduler: Scheduler, raw: Any, project: str = "web", leases: bool = True) -> None:
    """Return when no chore is left and, with `leases`, nothing is reserved. No lease and no pause is waited for."""
    keys = LedgerKeys(project)

    async def done() -> bool:
        for cell in scheduler._cells:
            await _let_be_due(raw, cell.store.keys.chores)
            await cell.sweeper.sweep()
        if leases:
            await _let_be_due(raw, keys.deadlines)
            await scheduler._quotas.settler.sweep()
        left = [await raw.zcard(cell.store.keys.chores) for cell in scheduler._cells]
        return not any(left) and not (leases and await raw.zcard(keys.deadlines))

    await wait_until(done, WITHIN_S, "no chore is left, and nothing is reserved")


async def _let_be_due(raw: Any, key: str) -> None:
    if ids := await raw.zrange(key, 0, -1):
        await raw.zadd(key, dict.fromkeys(ids, 1), xx=True)
