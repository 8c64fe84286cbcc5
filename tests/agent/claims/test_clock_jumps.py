"""Work runs for as long as it may, whatever the store's clock says meanwhile. Scripts read a clock that tests set."""

from redsched.model import ClaimStatus
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
