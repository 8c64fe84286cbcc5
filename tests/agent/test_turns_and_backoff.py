"""The timers of hosts, and the backoff of calls to the store."""

import asyncio
import random

import pytest
from structlog.testing import capture_logs

from redsched.agent import backoff as line_module
from redsched.agent.backoff import LONGEST_PAUSE_S, AgentRefused, StoreBackoff
from redsched.agent.timers import TimerQueue
from redsched.errors import StoreUnavailable, Unavailable
from redsched.model.tokens import is_newer
from tests.support.waiting import patience_s


async def test_hosts_come_in_the_order_of_their_times() -> None:
    turns = TimerQueue[str]()
    for name, in_s in (("c", -1.0), ("a", -3.0), ("b", -2.0), ("later", 1000.0)):
        turns.set(name, in_s)
    assert await turns.due(10) == ["a", "b", "c"]


async def test_no_more_than_asked_for_come_at_once() -> None:
    turns = TimerQueue[str]()
    for number in range(5):
        turns.set(str(number), float(number - 10))
    assert [await turns.due(2) for _ in range(3)] == [["0", "1"], ["2", "3"], ["4"]]


async def test_an_earlier_time_counts_and_a_later_one_does_not() -> None:
    turns = TimerQueue[str]()
    turns.set("a", 1000.0)
    turns.set("a", -1.0)
    turns.set("a", 2000.0)
    assert await turns.due(10) == ["a"]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(turns.due(10), 0.1)


async def test_a_dropped_host_has_no_turn() -> None:
    turns = TimerQueue[str]()
    turns.set("a", -2.0)
    turns.set("b", -1.0)
    turns.drop("a")
    turns.drop("never there")
    assert await turns.due(10) == ["b"]


async def test_a_waiter_is_woken_by_a_turn_set_to_now() -> None:
    turns = TimerQueue[str]()
    turns.set("later", 1000.0)
    waiting = asyncio.create_task(turns.due(10))
    await asyncio.sleep(0)
    turns.set("now", 0.0)
    assert await asyncio.wait_for(waiting, patience_s(10)) == ["now"]


async def test_a_waiter_is_woken_when_a_turn_comes() -> None:
    turns = TimerQueue[str]()
    turns.set("soon", 0.05)
    assert await asyncio.wait_for(turns.due(10), patience_s(10)) == ["soon"]


async def test_asking_continues_until_there_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "FIRST_PAUSE_S", 0.001)
    line, failures = StoreBackoff(), 5

    async def call() -> str:
        nonlocal failures
        failures -= 1
        if failures > 0:
            raise StoreUnavailable("away")
        return "answer"

    assert await line.call(call) == "answer"
    assert not line.is_down


async def test_it_is_logged_whether_the_store_is_away_or_the_api_refuses_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_module, "FIRST_PAUSE_S", 1e-9)
    monkeypatch.setattr(line_module, "LONGEST_PAUSE_S", 1e-9)
    line = StoreBackoff()
    with capture_logs() as logged:
        for error in (StoreUnavailable("gone"), AgentRefused("a token"), AgentRefused("a token"), Unavailable("gone")):
            line.failed(error)
            await line.ready()
    assert [(one["event"], one["error"]) for one in logged] == [
        ("store unavailable, retrying", "gone"),
        ("refused, retrying", "a token"),
        ("store unavailable, retrying", "gone"),
    ]


async def test_errors_that_waiting_does_not_repair_are_raised() -> None:
    async def call() -> None:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        await StoreBackoff().call(call)


async def test_pauses_grow_to_a_limit_and_those_who_fail_together_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    line, now = StoreBackoff(), 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    pauses = []
    for _ in range(10):
        for _ in range(50):
            line.failed(Unavailable("away"))
        pauses.append(line._until_s - now)
        now = line._until_s
    assert pauses[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE_S)
    line.succeeded()
    assert not line.is_down
    await line.ready()


@pytest.mark.parametrize(
    ("epoch", "than", "expected"),
    [
        ("10-a", "9-b", True),
        ("9-b", "10-a", False),
        ("9-b", "9-a", True),
        ("9-a", "9-a", False),
        ("9-a", "", True),
        ("", "", False),
        ("", "9-a", False),
    ],
)
def test_epochs_compare_as_numbers_then_by_replica(epoch: str, than: str, expected: bool) -> None:
    assert is_newer(epoch, than) is expected
