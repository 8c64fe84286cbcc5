"""How a long-running command ends: by a signal, or by an error of its own."""

import asyncio
import os
import signal

import pytest

from redsched.cli import running
from redsched.cli.running import SIGNALS, run_until_ended


@pytest.mark.parametrize("one", SIGNALS)
def test_a_signal_is_the_good_end_of_it(one: signal.Signals) -> None:
    done: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), one)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("in order")

    before = signal.getsignal(one)
    run_until_ended(work())
    assert done == ["in order"]
    assert signal.getsignal(one) is before


def test_a_cancellation_that_was_lost_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library may take the cancellation for the end of what it awaited."""
    monkeypatch.setattr(running, "ORDERLY_S", 0.01)
    lost: list[str] = []

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost.append("once")
        await asyncio.Event().wait()

    run_until_ended(work())
    assert lost == ["once"]


def test_what_fails_by_itself_is_raised() -> None:
    async def work() -> None:
        raise ValueError("by itself")

    with pytest.raises(ValueError, match="by itself"):
        run_until_ended(work())
