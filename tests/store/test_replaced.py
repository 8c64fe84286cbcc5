"""Answers of a replaced primary are recognized by their epoch, and the calls are sent again to the new primary."""

import pytest

from redsched.store.client.replaced import PATIENCE_S, ReplacedPrimaries
from redsched.store.store import Store

OLD, NEW, NEWER = "1790000000000-aaaaaaaa", "1790000000001-bbbbbbbb", "1790000000002-cccccccc"
META = "rs:{c1}:meta"


class Clock:
    """A clock that the test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def replaced(clock: Clock) -> ReplacedPrimaries:
    return ReplacedPrimaries(clock)


def accepted(replaced: ReplacedPrimaries, epoch: str, meta: str = META) -> bool:
    """Return whether a reply in this epoch is accepted."""
    return not replaced.is_outdated(meta, ["OK", epoch, 1790000000500])


def test_an_older_epoch_is_rejected_once_a_newer_one_was_seen(replaced: ReplacedPrimaries) -> None:
    assert [accepted(replaced, epoch) for epoch in (OLD, OLD, NEW, OLD, NEW, NEWER, NEW)] == [
        True,
        True,
        True,
        False,
        True,
        True,
        False,
    ]


def test_each_cell_has_epochs_of_its_own(replaced: ReplacedPrimaries) -> None:
    assert accepted(replaced, NEW)
    assert accepted(replaced, OLD, "rs:{c2}:meta")


def test_an_older_epoch_is_accepted_again_when_the_newer_one_has_been_silent(
    replaced: ReplacedPrimaries, clock: Clock
) -> None:
    """The primary that was cut off had started the newer one, and the one that stays has an older one."""
    assert accepted(replaced, NEW)
    clock.now_s += PATIENCE_S / 2
    assert accepted(replaced, NEW)
    clock.now_s += PATIENCE_S * 0.9
    assert not accepted(replaced, OLD)
    clock.now_s += PATIENCE_S * 0.2
    assert accepted(replaced, OLD)
    assert accepted(replaced, OLD)


@pytest.mark.parametrize("reply", [["OK", "c1"], ["OK"], [], "OK", 7, None, ["OK", 12, 13]])
def test_replies_without_an_epoch_are_accepted(replaced: ReplacedPrimaries, reply: object) -> None:
    assert accepted(replaced, NEW)
    assert not replaced.is_outdated(META, reply)  # type: ignore[arg-type]  # as the wire may have it


async def test_the_name_of_a_cell_is_not_taken_for_an_epoch(clean_store: str) -> None:
    """Only the replies of a cell's scripts have its epoch: bind.lua replies with the name of the cell."""
    async with Store.connect(clean_store) as store:
        bindings = store.cell("2-b").bindings
        assert await bindings.bind("mine", "2-b", 60_000) == "2-b"
        client = store.cell("2-b")._cell.scripts
        before = client.counters.resent
        assert await bindings.bind("mine", "1-a", 60_000) in ("1-a", "2-b")
        assert client.counters.resent == before
        assert client._exchange.replaced._newest == {}


async def test_a_call_that_a_replaced_primary_answered_is_sent_again(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other primary answers here, so the answer of the same one is accepted in the end."""
    monkeypatch.setattr("redsched.store.client.replaced.PATIENCE_S", 0.3)
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        epoch = (await cell.tick()).epoch
        client = cell._cell.scripts
        before = client.counters.resent
        later = f"{int(epoch.partition('-')[0]) + 1}-dddddddd"
        assert not client._exchange.replaced.is_outdated(cell.keys.meta, ["OK", later, 1])
        assert (await cell.tick()).epoch == epoch
        assert client.counters.resent > before
