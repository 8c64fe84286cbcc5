"""Following changes through the library: a bad id is refused by the call, and no update of the replica is missed."""

import asyncio

import pytest

from redsched.cache.updater import ReplicaUpdater
from redsched.errors import InvalidRequest, NotFound
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.store import Store
from tests.support.waiting import patience_s


async def test_an_id_that_cannot_be_one_is_refused_at_the_call(scheduler: Scheduler) -> None:
    """A refusal when the first change is read would be too late: a server has sent status 200 by then."""
    with pytest.raises(NotFound, match="c9"):
        scheduler.changes("c9:1")
    with pytest.raises(InvalidRequest, match="Last-Event-ID"):
        scheduler.changes("c1")


async def test_a_move_between_the_call_and_the_wait_is_not_missed(clean_store: str) -> None:
    """A follower gets the future before it reads: an update between the two must complete it."""
    async with Store.connect(clean_store) as store:
        updater = ReplicaUpdater(store.cell("c1"), Settings())
        moved = updater.moved()
        updater._notify_listeners()
        await asyncio.wait_for(moved, patience_s(20))
