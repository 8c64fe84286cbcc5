"""Work runs for as long as it may, whatever the store's clock says meanwhile. Scripts read a clock that tests set."""

import pytest

from redsched.agent.journal.journal import open_journal
from redsched.model import ClaimStatus, EndReason
from tests.agent.conftest import World
from tests.support.store_clock import HOUR_MS, StoreTime
from tests.support.waiting import wait_until

ACTIVE, ENDED = ClaimStatus.ACTIVE, ClaimStatus.ENDED
EIGHT_HOURS_S = 8 * 3600


async def attested_again(world: World, store_time: StoreTime, ahead_ms: int) -> None:
    """Set the store's clock, and wait until the host has attested to the epoch that this starts."""
    before = (await world.cell.tick()).epoch
    store_time.set_ahead(ahead_ms)
    epoch = (await world.cell.tick()).epoch
    assert epoch != before

    async def has_attested() -> bool:
        return (await world.host())["epoch"] == epoch

    await wait_until(has_attested, timeout=30)


async def test_work_survives_a_jump_of_the_stores_clock(store_time: StoreTime, world: World) -> None:
    """Its clock goes nine hours ahead, and back again."""
    await world.start(hook=world.hook)
    await world.place("a", max_runtime_s=EIGHT_HOURS_S)
    before = await world.reaches("a", ACTIVE)
    await attested_again(world, store_time, 9 * HOUR_MS)
    assert (await world.reaches("a", ACTIVE)).state is ACTIVE
    await attested_again(world, store_time, 0)
    after = await world.reaches("a", ACTIVE)
    assert world.calls("stop") == []
    assert before.runtime_deadline_ms is not None
    assert after.runtime_deadline_ms is not None
    assert abs(after.runtime_deadline_ms - before.runtime_deadline_ms) < HOUR_MS


@pytest.mark.parametrize("ahead_ms", [9 * HOUR_MS, -9 * HOUR_MS])
async def test_work_that_was_placed_before_a_jump_is_started(
    store_time: StoreTime, world: World, ahead_ms: int
) -> None:
    """Its host hears of it after the jump. It has as much time left as before."""
    agent = await world.start(hook=world.hook)
    await world.stop(agent)
    await world.place("a", max_runtime_s=3600)
    store_time.set_ahead(ahead_ms)
    await world.start(hook=world.hook)
    claim = await world.reaches("a", ACTIVE)
    assert world.calls("stop") == []
    left_ms = (claim.runtime_deadline_ms or 0) - (await world.cell.tick()).now_ms
    assert 0 < left_ms <= HOUR_MS + 600_000


async def test_the_next_agent_counts_on(store_time: StoreTime, world: World) -> None:
    """It starts after the clock has jumped for good, and stops the work when its time is up."""
    agent = await world.start(hook=world.hook)
    await world.place("a", max_runtime_s=3600)
    await world.reaches("a", ACTIVE)
    await world.stop(agent)
    store_time.set_ahead(9 * HOUR_MS)
    journal = open_journal(world.folder / "journal.sqlite")
    [(host, placed)] = journal.limits
    left_ms = journal.left_ms(host, placed)
    assert left_ms is not None
    assert 0 < left_ms <= HOUR_MS
    await journal.write_limit(host, placed, 0)
    await journal.close()
    await world.start(hook=world.hook)
    assert (await world.reaches("a", ENDED)).end_reason is EndReason.MAX_RUNTIME
