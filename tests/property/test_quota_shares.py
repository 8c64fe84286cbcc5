"""Schedulers divide a quota, transfer shares and claim, with their steps in any order: the limit always holds.

Each script call waits until the test lets it run. A scheduler may die before any of its steps, a call may arrive again
much later, and a cell may lose its last writes and begin a new epoch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from redsched.errors import RedschedError
from redsched.model import Exceeded, Quota, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.quotas import enforcement, shares
from redsched.scheduler.quotas.shares import QuotaShares
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.script_client import ScriptClient
from redsched.store.commands.claims import ClaimCommands
from redsched.store.commands.declared import DeclaredCommands
from redsched.store.commands.quotas import QuotaCommands
from tests.scheduler.conftest import report_all, report_of
from tests.support.builders.cells import new_epoch, raw_client
from tests.support.profiles import LONG_EXAMPLES, PHASES, is_long

CELLS = ("a", "b")
LIMIT = 6
STEPS: Sequence[tuple[type, str]] = (
    (DeclaredCommands, "read"),
    *((QuotaCommands, step) for step in ("close", "share", "give", "take", "close_transfer")),
    (ClaimCommands, "place"),
)
SETTINGS = Settings(cells=CELLS, pick_from=1, check_s=0, tick_s=3600, events_keep_s=0)
EXAMPLES = LONG_EXAMPLES if is_long() else 20

orders = st.lists(st.integers(0, 1000), min_size=60, max_size=90)
words = st.lists(
    st.tuples(st.sampled_from(("claim", "gather", "gather", "divide")), st.sampled_from(CELLS), st.integers(2, 6)),
    min_size=3,
    max_size=6,
)


@dataclass(slots=True)
class Turns:
    """The calls that wait for their turn, and those that had their turn."""

    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    past: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)
    on: bool = False
    running: int = 0

    async def take(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call once it gets its turn."""
        if self.on:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.append(turn)
            await turn
            self.past.append(call)
        return await self.run(call)

    async def run(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call now, and count it while it runs."""
        self.running += 1
        try:
            return await call()
        finally:
            self.running -= 1

    async def rest(self) -> None:
        """Return once no call has been running for a moment: all remaining calls wait for their turns."""
        idle = 0
        for _ in range(20):
            await asyncio.sleep(0.0002)
            idle = 0 if self.running else idle + 1
            if idle == 2:
                return


@contextmanager
def in_turn(monkeypatch: pytest.MonkeyPatch) -> Iterator[Turns]:
    """Make the steps of every scheduler in this process wait for their turns."""
    turns = Turns()

    run_script = ScriptClient.run

    async def counted(self: ScriptClient, *arguments: Any, **named: Any) -> Any:
        return await turns.run(lambda: run_script(self, *arguments, **named))

    def waiting(room: type, name: str) -> Callable[..., Awaitable[Any]]:
        really = getattr(room, name)

        async def call(self: Any, *arguments: Any, **named: Any) -> Any:
            return await turns.take(lambda: really(self, *arguments, **named))

        return call

    with monkeypatch.context() as patched:
        patched.setattr(shares, "UNDER_WAY_MS", -1_000_000)
        patched.setattr(shares, "RETURNED_AFTER_MS", -1_000_000)
        patched.setattr(enforcement, "PAUSE_S", 0.0)
        patched.setattr(ScriptClient, "run", counted)
        for room, name in STEPS:
            patched.setattr(room, name, waiting(room, name))
        yield turns
        turns.on = False
        for turn in turns.waiting:
            turn.cancel()


async def next_step(turns: Turns, number: int) -> None:
    """Let one waiting call have its turn; sometimes repeat an earlier call or kill a scheduler instead."""
    for _ in range(20):
        await asyncio.sleep(0)
    if number % 5 == 0 and turns.past:
        await turns.past[-1 - number // 5 % min(6, len(turns.past))]()  # a late copy of an earlier call
    elif turns.waiting:
        turn = turns.waiting.pop(number % len(turns.waiting))
        if number % 17 == 0:
            turn.cancel()  # its scheduler dies
        elif not turn.done():
            turn.set_result(None)
    await turns.rest()


async def may_use(raw: Any) -> int:
    """Return the amount that the cells may use together: for each its valid share, or its usage if that is more."""
    async with raw.pipeline() as pipe:
        for cell in CELLS:
            pipe.hget(f"rs:{{{cell}}}:meta", "epoch")
            pipe.hgetall(f"rs:{{{cell}}}:quota:web")
        found = await pipe.execute()
    total = 0
    for epoch, fields in zip(found[::2], found[1::2], strict=True):
        share = int(fields.get("share.VCPU", 0)) if fields.get("share_epoch") == epoch else 0
        total += max(share, int(fields.get("used.VCPU", 0)))
    return total


async def play(url: str, monkeypatch: pytest.MonkeyPatch, said: list[tuple[str, str, int]], order: list[int]) -> None:
    """Begin all operations concurrently, and give turns in this order."""
    async with raw_client(url) as raw, Scheduler.connect(url, SETTINGS) as scheduler:
        await raw.flushall()
        await scheduler.init()
        await report_all(scheduler, [report_of(f"{cell}1", cell=cell, VCPU=64) for cell in CELLS])
        await scheduler.quotas.put(Quota("web", {"VCPU": LIMIT}))
        stores = {cell: scheduler.cells.named(cell).store for cell in CELLS}
        # Every division replaces this one, as if its scheduler had found a cell without a share.
        first = (await scheduler._enforcement.shares.read("web"))["a"].division
        others = [QuotaShares(scheduler.cells) for _ in said]

        def begin(word: str, cell: str, amount: int, shares: QuotaShares) -> Awaitable[Any]:
            if word == "claim":
                return scheduler.select(Request({"VCPU": amount}, project="web", hosts=frozenset((f"{cell}1",))))
            if word == "gather":
                asked = Exceeded("VCPU", 0, 0, amount)
                return shares.gather(scheduler.cells.named(cell), "web", (asked,))
            return shares.divide("web", instead_of=first)

        with in_turn(monkeypatch) as turns:
            turns.on = True
            begun = [asyncio.ensure_future(begin(*one, shares)) for one, shares in zip(said, others, strict=True)]
            copies: dict[str, dict[str, str]] = {}
            for number in order:
                cell = CELLS[number % 2]
                if number % 7 == 0:
                    copies[cell] = await raw.hgetall(stores[cell].keys.quota("web"))
                if number % 31 == 0:
                    await new_epoch_in(raw, stores[cell], f"{cell}1", copies.get(cell, {}))
                await next_step(turns, number)
                assert await may_use(raw) <= LIMIT
            for task in begun:
                task.cancel()
            results = await asyncio.gather(*begun, return_exceptions=True)
        faults = [one for one in results if isinstance(one, Exception) and not isinstance(one, RedschedError)]
        assert faults == []


async def new_epoch_in(raw: Any, store: CellStore, host: str, copy: dict[str, str]) -> None:
    """Begin an epoch in which the cell's quota is that of the copy, except for the usage, which hosts restore."""
    epoch, key = await new_epoch(store), store.keys.quota("web")
    if copy:
        brought_back = {name: value for name, value in (await raw.hgetall(key)).items() if is_brought_back(name)}
        async with raw.pipeline() as pipe:
            pipe.delete(key)
            pipe.hset(key, mapping={name: value for name, value in copy.items() if not is_brought_back(name)})
            pipe.hset(key, mapping={"seq": "0", **brought_back})
            await pipe.execute()
    await store.hosts.attest(host, epoch)


def is_brought_back(name: str) -> bool:
    return name == "seq" or name.startswith("used.")


@pytest.mark.usefixtures("clean_store")
@given(said=words, order=orders)
@settings(
    phases=PHASES, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_the_limit_holds_in_every_order_of_steps(
    url: str, monkeypatch: pytest.MonkeyPatch, said: list[tuple[str, str, int]], order: list[int]
) -> None:
    asyncio.run(play(url, monkeypatch, said, order))
