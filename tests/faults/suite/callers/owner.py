"""An owner: one scheduler process requests, holds, changes and releases claims, and reports calls and results."""

import asyncio
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any

from redsched.errors import ClaimState, NotConfirmed, NotFound, NoValidHost, OutcomeUnknown, QuotaExceeded, Unavailable
from redsched.model import ClaimStatus, Request
from redsched.model.records.selections import Selections
from redsched.scheduler import Scheduler
from tests.faults.suite.callers import traffic
from tests.faults.suite.callers.changing import Changing, Left
from tests.faults.suite.processes.speech import say

WORKERS = 3
PAUSE_S = 0.02
TOLD_FRAMES = 6

LOOK, CHANGE, FAIL, SHELVE, UNSHELVE, GIVE = 0.07, 0.08, 0.04, 0.04, 0.04, 0.35
"""Weights of the actions in a turn (explain, resize, move, fail and so on); otherwise a turn requests a claim."""

GIVE_GANG = 0.4
"""The share of gangs whose claims are all released at once, as soon as the gang has been placed."""


class Owner:
    """The work in progress of one scheduler process."""

    def __init__(self, scheduler: Scheduler, words: dict[str, Any]) -> None:
        self._scheduler = scheduler
        self._name: str = words["name"]
        self._rng = Random(f"{words['seed']} {self._name} {words['number']}")
        self._held: deque[str] = deque(words["held"])
        self._shelved: deque[str] = deque(words["shelved"])
        self._asked = deque(self._known_asks(words["asked"]))
        self._given: deque[str] = deque(words["giving"])
        self._number: int = words["number"]
        self._changing = Changing(scheduler, self._rng)
        self._goes_on = asyncio.Event()
        self._workers = [asyncio.create_task(self._work()) for _ in range(WORKERS)]
        self._busy = 0

    async def play(self) -> None:
        """Request and release claims until told to rest."""
        self._goes_on.set()

    async def rest(self) -> None:
        """Return when nothing is in progress, and every request has its outcome."""
        self._goes_on.clear()
        while self._busy:  # noqa: ASYNC110 - every worker may begin and end a turn meanwhile
            await asyncio.sleep(PAUSE_S)
        while self._asked:
            await self._ask(self._asked.popleft())
        while self._given:
            await self._give(self._given.popleft())
        say("resting")

    async def release(self) -> None:
        """Release everything."""
        self._held += self._shelved
        self._shelved.clear()
        while self._held:
            some = [self._held.popleft() for _ in range(min(len(self._held), WORKERS))]
            await asyncio.gather(*(self._give(one) for one in some))
        say("released")

    async def _work(self) -> None:
        while True:
            await self._goes_on.wait()
            self._busy += 1
            try:
                await self._turn()
            except Exception as error:
                say("defect", error="".join(traceback.format_exception(error)[-TOLD_FRAMES:]))
            finally:
                self._busy -= 1
            await asyncio.sleep(PAUSE_S * self._rng.uniform(0.5, 1.5))

    async def _turn(self) -> None:
        chance = self._rng.random()
        if self._asked:
            await self._ask(self._asked.popleft())
        elif self._given:
            await self._give(self._given.popleft())
        else:
            await self._something_new(chance)

    async def _something_new(self, chance: float) -> None:
        verbs = (
            (LOOK, [""], self._look),
            (CHANGE, self._held, self._changing.change),
            (FAIL, self._held, self._changing.fail),
            (SHELVE, self._held, self._changing.shelve),
            (UNSHELVE, self._shelved, self._changing.unshelve),
            (GIVE, self._held, self._give),
        )
        for share, of, verb in verbs:
            if chance < share and of:
                await self._take(of, verb)
                return
            chance -= share
        if len(self._held) >= traffic.MAX_HELD:
            await self._take(self._held, self._give)
            return
        self._number += 1
        await self._ask(traffic.next_ids(self._rng, self._name, self._number))

    async def _take(self, of: deque[str] | list[str], verb: Callable[[str], Awaitable[Left | None]]) -> None:
        """Change one of those claims, and file it under its new state."""
        chosen = self._rng.randrange(len(of))
        claim_id = of[chosen]
        del of[chosen]
        left = await verb(claim_id)
        if left is Left.HELD:
            self._held.append(claim_id)
        elif left is Left.SHELVED:
            self._shelved.append(claim_id)
        elif left is Left.UNCLEAR:
            await self._give(claim_id)

    def _known_asks(self, asked: list[list[str]]) -> Iterator[tuple[str, ...]]:
        """Return the requests that can be repeated. Ids that the server was to create are unknown."""
        for ids in asked:
            if traffic.is_made(ids):
                say("orphaned", ids=ids)
            else:
                yield tuple(ids)

    async def _ask(self, ids: tuple[str, ...]) -> None:
        say("asked", ids=ids, number=self._number)
        try:
            found = await self._placed(ids)
        except (NoValidHost, QuotaExceeded):
            say("refused", ids=ids)
        except (ClaimState, NotConfirmed) as error:
            # Some places may be left: others have ended, or the store has lost them.
            states = (error.facts.claims if isinstance(error, ClaimState) else None) or {}
            left = [one for one, state in states.items() if state != ClaimStatus.ENDED]
            await asyncio.gather(*(self._give(one) for one in left))
            say("over", ids=ids, why=error.problem)
        else:
            until = traffic.KINDS[traffic.kind_of(ids[0])].until
            placed = [one.claim_id or "" for one in found.selections]
            hosts, tokens = [one.host for one in found.selections], [one.token for one in found.selections]
            leases = [one.expires_at_ms for one in found.selections]
            say("placed", asked=ids, ids=placed, hosts=hosts, tokens=tokens, expire_at_ms=leases, until=until)
            if len(placed) > 1 and self._rng.random() < GIVE_GANG:
                await asyncio.gather(*(self._give(one) for one in placed))
            else:
                self._held.extend(placed)

    async def _placed(self, ids: tuple[str, ...]) -> Selections:
        """Return the answer to a request. Ids that the server created are repeated with it once they may be in use."""
        made: tuple[str, ...] = ()

        async def select() -> Selections:
            nonlocal made
            try:
                return await self._scheduler.select(traffic.request_of(ids, made))
            except OutcomeUnknown as error:
                made = made or tuple(error.facts.claim_ids)
                raise

        found: Selections = await self._changing.answered(select)
        return found

    async def _give(self, claim_id: str) -> None:
        say("giving", id=claim_id)
        release = self._scheduler.claims.release
        try:
            is_free = await self._changing.answered(lambda: release(claim_id), NotFound)
        except (NotFound, ClaimState) as error:
            say("gave", id=claim_id, how=error.problem)
        else:
            say("gave", id=claim_id, how="free" if is_free else "ending")

    async def _look(self, _: str) -> None:
        """Explain a request, and make a dry run: neither may leave anything behind."""
        asked = Request(traffic.KINDS["large"].resources, claim=False)
        try:
            await self._scheduler.explain(asked)
            await self._scheduler.select(asked)
        except NoValidHost:
            pass
        except Unavailable as error:
            say("trouble", error=type(error).__name__)
            return
        say("looked")
