"""Placements in any history of moves, failures, shelving, releases, losses of data, write-offs and returning hosts.

After every step all counters are correct, and no amount is free that a host's running work uses. Once no action is
pending, at most one placement of a claim lives. A claim that its owner has released does not live; one that a host has
confirmed does, unless its owner released it, its host failed it or an operator wrote its host off.

A history consists of chapters. After each the store may go back to the beginning of any chapter, or be wiped.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from hypothesis import given, settings, strategies as st

from redsched.model import ClaimStatus, EndReason
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import raw_client
from tests.support.builders.histories import Histories
from tests.support.builders.played import SETTINGS, UNHURRIED
from tests.support.profiles import LONG_EXAMPLES, SHORT_EXAMPLES, is_long

HOSTS = ("h1", "h2", "h3")
EXAMPLES = 10 * LONG_EXAMPLES if is_long() else 2 * SHORT_EXAMPLES

Words = list[tuple[str, int]]
Chapter = tuple[Words, int | None]

# Each word has a number, which selects a host, a pending call or another item.
WORDS = ("attest", "attest", "attest", "off", "lease", "deadline", "fail", "copy", "reconcile", "next")
BY_OWNER = ("release", "shelve", "repeat", "call off", "move", "resize")
numbers = st.integers(0, 2)
words = st.tuples(st.sampled_from((*WORDS, *BY_OWNER)), numbers)


def chapter(steps: int, most: int, losses: st.SearchStrategy[int | None]) -> st.SearchStrategy[Chapter]:
    """Return a chapter: some steps of the claim's life, then other words, then perhaps a loss of data."""
    goes_on = st.lists(st.tuples(st.just("next"), numbers), max_size=steps)
    return st.tuples(st.builds(list.__add__, goes_on, st.lists(words, max_size=most)), losses)


# A claim lives, some of its history is lost, perhaps all of it, and in the new epoch the first calls arrive.
never, perhaps = st.none(), st.sampled_from((None, None, 1, 1, 2, 3, -1))
lost = st.sampled_from((1, 1, 1, 1, 0, -1))
chapters = st.tuples(chapter(9, 1, never), chapter(6, 1, lost), chapter(0, 3, perhaps), chapter(3, 3, perhaps)).map(
    list
)


class Story:
    """Plays the words of a history on one claim."""

    def __init__(self, world: Histories) -> None:
        self.world = world
        self.agents = list(world.agents.values())

    async def begin(self) -> None:
        for agent in self.agents:
            await self.world.attest(agent)
        self.claim_id = await self.world.claim("h1")

    async def play(self, chapters: list[Chapter]) -> None:
        for said, loss in chapters:
            await self.world.remember()
            for word, number in said:
                await self.words()[word](number)
                await self.world.check_always()
            if loss is not None:
                await self.world.lose(self.world.snapshots[loss % len(self.world.snapshots)] if loss >= 0 else None)
        await self.world.settle()
        await self.world.check_settled()

    def words(self) -> dict[str, Callable[[int], Coroutine[Any, Any, Any]]]:
        world, claim_id = self.world, self.claim_id
        return {
            "next": self.go_on,
            "move": lambda n: world.place_again(claim_id, HOSTS[n], EndReason.MOVED, 3600),
            "attest": lambda n: world.attest(self.agents[n]),
            "off": lambda n: world.write_off(self.agents[n]),
            "fail": self.fail,
            "reconcile": lambda _: world.reconcile(claim_id),
            "lease": lambda _: world.expire(claim_id, of_move=False),
            "deadline": lambda _: world.expire(claim_id, of_move=True),
            "copy": world.send_again,
            "call off": lambda _: world.call_off(claim_id),
            "release": lambda _: world.release(claim_id, EndReason.RELEASED),
            "shelve": lambda _: world.release(claim_id, EndReason.SHELVED),
            "resize": lambda n: world.resize(claim_id, n + 1),
            "repeat": lambda _: world.repeat_closings(),
        }

    async def go_on(self, number: int) -> None:
        """Take one step of the claim's life: a pending action of a host, else of a scheduler, else of the owner."""
        world, claim = self.world, await self.world.read(self.claim_id)
        for agent in self.agents:
            if await world.is_heard(agent) and await world.hear_next(agent):
                return
        if claim and claim.state is ClaimStatus.PENDING:
            await world.place_again(self.claim_id, HOSTS[number], EndReason.FAILED)
        elif claim and claim.end_reason is EndReason.SHELVED:
            await world.place_again(self.claim_id, HOSTS[number], EndReason.SHELVED)
        elif claim and len(claim.placements) > 1:
            await world.reconcile(self.claim_id)
        elif claim and claim.state is ClaimStatus.ACTIVE:
            if number == 0 and claim.host == HOSTS[0]:
                await world.release(self.claim_id, EndReason.SHELVED)
            else:
                await world.place_again(self.claim_id, HOSTS[number], EndReason.MOVED, 3600)

    async def fail(self, number: int) -> None:
        """Let a live host fail a placement: number 0 retries as the request says, other numbers always retry."""
        found = [one for one in self.world.entries(self.claim_id) if not one[0].is_dead]
        if found:
            await self.world.fail(*found[number % len(found)], retry=True if number else None)


def test_what_lives_is_what_its_owner_was_answered_after_any_history(server: PrivateServer) -> None:
    async def tell(history: list[Chapter]) -> None:
        await raw.flushall()
        cell = store.cell("c1")
        await cell.init()
        await raw.hset(cell.keys.meta, mapping=UNHURRIED)
        story = Story(Histories(cell, raw, HOSTS))
        await story.begin()
        await story.play(history)

    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        raw = loop.run(stack.enter_async_context(raw_client(server.url)))
        store = loop.run(stack.enter_async_context(Store.connect(server.url, SETTINGS)))

        @settings(max_examples=EXAMPLES)
        @given(chapters)
        def check(history: list[Chapter]) -> None:
            loop.run(tell(history))

        try:
            check()
        finally:
            loop.run(stack.aclose())
