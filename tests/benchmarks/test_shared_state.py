"""The shared-state prototype: increments are counted once, own claims are corrected, lost messages are noticed."""

from typing import Any

import pytest

from benchmarks.models.hosts import Book
from benchmarks.models.message_window import MessagesLost, MessageWindow
from benchmarks.models.rpc import Message
from benchmarks.models.shared_state import IncrementPublisher, SharedHost, SharedStateScheduler
from benchmarks.models.views import make_views
from benchmarks.models.work import HostSpec, Setup

HOST = HostSpec("h1", {"VCPU": 10, "MEMORY_MB": 100})
ME, OTHER = 0, 1


def window(*seeds: int) -> MessageWindow:
    """Return a window that starts at seed 10 and has received these."""
    one = MessageWindow(size=4)
    one.reset(10)
    for seed in seeds:
        assert one.accept(seed)
    return one


def test_nothing_is_accepted_before_the_first_state() -> None:
    assert not MessageWindow().accept(1)


def test_each_message_is_accepted_once_in_any_order_within_the_window() -> None:
    assert not window(11).accept(11)
    assert not window(11).accept(10)
    overtaken = window(11, 13)
    assert overtaken.missing == {12}
    assert overtaken.accept(12)
    assert not overtaken.accept(12)


def test_a_message_that_does_not_come_within_the_window_is_lost() -> None:
    one = window(11, 13, 14, 15)
    with pytest.raises(MessagesLost):
        one.accept(16)
    assert not one.accept(17)


def test_a_wide_gap_is_lost_messages() -> None:
    with pytest.raises(MessagesLost):
        window(11).accept(17)


def shared(used: int = 0) -> SharedHost:
    """Return a host whose state arrived as message 1."""
    host = SharedHost(HOST, make_views([HOST])["h1"])
    host.receive(message(1, {"used": {"VCPU": used}}), ME)
    return host


def message(seed: int, *items: Message) -> Message:
    return {"host": "h1", "seed": seed, "items": list(items)}


def item(sender: int, seed: int, ok: bool, vcpus: int = 2) -> Message:
    return {"from": sender, "seed": seed, "amounts": {"VCPU": vcpus}, "ok": ok}


def test_own_claims_count_at_once_and_not_again_when_they_are_confirmed() -> None:
    host = shared(used=1)
    host.consume(7, {"VCPU": 2})
    assert host.view.used["VCPU"] == 3
    host.receive(message(2, item(ME, 7, ok=True)), ME)
    assert host.view.used["VCPU"] == 3


def test_a_refused_claim_is_taken_back_once() -> None:
    host = shared(used=1)
    host.consume(7, {"VCPU": 2})
    host.receive(message(2, item(ME, 7, ok=False)), ME)
    host.receive(message(3, item(ME, 7, ok=False)), ME)
    assert host.view.used["VCPU"] == 1


def test_claims_of_others_count_and_a_repeated_message_does_not() -> None:
    """The seeds of two schedulers' claims may be equal."""
    host = shared()
    host.consume(7, {"VCPU": 2})
    merged = message(2, item(OTHER, 7, ok=True, vcpus=3), item(OTHER, 8, ok=True, vcpus=1))
    host.receive(merged, ME)
    host.receive(merged, ME)
    assert host.view.used["VCPU"] == 6


def test_a_whole_state_replaces_everything_and_later_confirmations_count() -> None:
    host = shared()
    host.consume(7, {"VCPU": 2})
    host.receive(message(9, {"used": {"VCPU": 5}}, item(ME, 7, ok=True)), ME)
    assert host.view.used["VCPU"] == 7


async def test_a_scheduler_that_lost_messages_asks_for_the_state() -> None:
    class HostProcess:
        def __init__(self) -> None:
            self.asked: list[Any] = []

        async def call(self, op: str, **fields: Any) -> Message:
            self.asked.append((op, fields))
            return {}

    hosts = HostProcess()
    scheduler = SharedStateScheduler(Setup("shared-state", "", "", (HOST,), ()), ME, hosts)  # type: ignore[arg-type]
    await scheduler.receive(message(1, {"used": {}}))
    await scheduler.receive(message(50, item(OTHER, 1, ok=True)))
    assert hosts.asked == [("state", {"host": "h1", "scheduler": ME})]
    assert not scheduler.shared["h1"].is_known
    await scheduler.receive(message(51, {"used": {"VCPU": 4}}))
    assert scheduler.shared["h1"].view.used["VCPU"] == 4


async def test_hosts_tell_everyone_of_an_accepted_claim_and_the_sender_of_a_refused_one() -> None:
    """What waits for one scheduler is one message, with the state first."""
    publisher, book = IncrementPublisher(None), Book(HOST)
    for number in (ME, OTHER):
        await publisher.asked(book, {"scheduler": number})
    claim = {"scheduler": ME, "seed": 3, "amounts": {"VCPU": 1}}
    await publisher.claimed(book, claim, accepted=True)
    await publisher.claimed(book, claim | {"seed": 4}, accepted=False)
    waiting = {number: pipes["h1"].waiting for number, pipes in publisher._pipes.items()}
    assert [one.get("seed") for one in waiting[ME]] == [None, 3, 4]
    assert [one.get("seed") for one in waiting[OTHER]] == [None, 3]
    assert publisher._pipes[ME]["h1"].take().count('"seed": 1,') == 1
    assert publisher._pipes[ME]["h1"].waiting == []
