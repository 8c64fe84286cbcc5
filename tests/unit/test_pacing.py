"""Long work yields to the event loop regularly, whatever its items and their number."""

import asyncio
import gc
from collections.abc import Iterator
from itertools import count

import pytest

from redsched import pacing
from redsched.operate.backup.archive import Packed
from redsched.pacing import SHARDS, TURN_S, Spread, TurnQueue, in_order, paced, paged

EACH_S = 0.001
AT_MOST = int(pacing.SLICE_S / EACH_S) + 1
"""The maximum number of items in one turn of the loop, if each takes a millisecond."""


@pytest.fixture(autouse=True)
def a_millisecond_an_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the clock by one that each call advances by a millisecond."""
    ticks = count()
    monkeypatch.setattr(pacing, "clock", lambda: next(ticks) * EACH_S)


class Turns:
    """Counts the turns of the event loop."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


@pytest.fixture
async def loop_turns() -> Turns:
    return Turns()


async def test_items_come_in_slices_with_a_turn_of_the_loop_between(loop_turns: Turns) -> None:
    """Each turn handles at most a slice of the items, and all of them are returned in order."""
    task = asyncio.create_task(loop_turns.run())
    turn_of = [(item, loop_turns.turns) async for item in paced(range(1000))]
    task.cancel()
    assert [item for item, _ in turn_of] == list(range(1000))
    turns = [turn for _, turn in turn_of]
    assert max(turns.count(turn) for turn in set(turns)) <= AT_MOST


async def test_pages_come_in_slices_and_hold_all_items(loop_turns: Turns) -> None:
    task = asyncio.create_task(loop_turns.run())
    pages = [page async for page in paged(range(250), 100)]
    task.cancel()
    assert [len(page) for page in pages] == [100, 100, 50]
    assert [item for page in pages for item in page] == list(range(250))
    assert loop_turns.turns > 250 // AT_MOST // 2


async def test_sorting_is_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for one run, several runs, and no items."""
    monkeypatch.setattr(pacing, "RUN", 3)
    for names in ([], ["b", "a"], [f"{number * 7 % 20}" for number in range(20)]):
        assert await in_order(names) == sorted(names)


async def test_sorting_never_takes_in_more_than_a_run_at_once(
    monkeypatch: pytest.MonkeyPatch, loop_turns: Turns
) -> None:
    monkeypatch.setattr(pacing, "RUN", 10)
    task = asyncio.create_task(loop_turns.run())
    taken: list[int] = []

    def names() -> Iterator[str]:
        for number in range(200):
            taken.append(loop_turns.turns)
            yield f"{number}"

    await in_order(names())
    task.cancel()
    assert max(taken.count(turn) for turn in set(taken)) <= 10


async def test_a_spread_is_a_mapping() -> None:
    spread = Spread[int]()
    spread.update({f"{number}": number for number in range(2 * SHARDS)})
    del spread["7"]
    assert ("7" in spread, "8" in spread, spread["9"], spread.get("7")) == (False, True, 9, None)
    assert len(spread) == 2 * SHARDS - 1
    assert spread == {f"{number}": number for number in range(2 * SHARDS) if number != 7}


async def test_a_spread_is_let_go_shard_by_shard(loop_turns: Turns) -> None:
    """Freeing a million entries at once would block the loop for as long as many requests take."""
    spread = Spread[int]()
    spread.update({f"{number}": number for number in range(2 * SHARDS)})
    task = asyncio.create_task(loop_turns.run())
    await spread.free_in_slices()
    task.cancel()
    assert (len(spread), loop_turns.turns >= SHARDS // AT_MOST) == (0, True)


async def test_a_spread_may_change_between_two_slices() -> None:
    """Entries may be added and removed during an iteration; those present all the time are returned exactly once."""
    spread = Spread[int]()
    spread.update({f"{number}": number for number in range(SHARDS)})
    seen = []
    async for name in paced(spread):
        seen.append(name)
        spread.pop("0", None)
        spread[f"new {name}"] = 0
        del spread[f"new {name}"]
    assert (len(seen), {f"{number}" for number in range(1, SHARDS)} - set(seen)) == (len(set(seen)), set())


async def test_garbage_collection_passes_over_a_spread_of_texts() -> None:
    """The collector scans a container without interruption, so none of a million claims may be tracked by it."""
    spread, packed = Spread[str](), Packed()
    for number in range(10 * SHARDS):
        spread[f"{number}"] = f"state {number}"
        packed.put(f"{number}", {"state": f"{number}"})
    assert packed["7"] == {"state": "7"}
    assert not any(map(gc.is_tracked, [*spread._shards, *packed._texts._shards]))


async def in_turn(queue: TurnQueue, loop_turns: Turns, seconds: float) -> int:
    """Wait for a turn, do work of so many seconds, and return in which turn of the loop that was."""
    await queue.wait()
    queue.spent(seconds)
    return loop_turns.turns


async def test_work_that_fits_into_one_turn_of_the_loop_waits_for_none(loop_turns: Turns) -> None:
    queue, task = TurnQueue(), asyncio.create_task(loop_turns.run())
    turns = await asyncio.gather(*(in_turn(queue, loop_turns, TURN_S / 10) for _ in range(10)))
    task.cancel()
    assert len(set(turns)) == 1


async def test_work_of_many_tasks_is_spread_over_turns_of_the_loop(loop_turns: Turns) -> None:
    queue, task = TurnQueue(), asyncio.create_task(loop_turns.run())
    turns = await asyncio.gather(*(in_turn(queue, loop_turns, TURN_S) for _ in range(5)))
    task.cancel()
    assert turns == sorted(turns)
    assert len(set(turns)) == 5


async def test_who_arrives_while_others_wait_for_their_turns_comes_after_them(loop_turns: Turns) -> None:
    queue = TurnQueue()
    order: list[int] = []

    async def work(number: int, turns_later: int = 0) -> None:
        for _ in range(turns_later):
            await asyncio.sleep(0)
        await in_turn(queue, loop_turns, TURN_S)
        order.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(4)]
    queue.spent(TURN_S)
    await asyncio.gather(*tasks, work(4, turns_later=1))
    assert order == [0, 1, 2, 3, 4]


async def test_a_task_that_leaves_while_it_waits_for_its_turn_holds_up_no_other(loop_turns: Turns) -> None:
    queue = TurnQueue()
    left, stays = (asyncio.create_task(in_turn(queue, loop_turns, TURN_S)) for _ in range(2))
    asyncio.get_running_loop().call_soon(left.cancel)
    queue.spent(TURN_S)
    await asyncio.wait_for(stays, 10)
    assert left.cancelled()
