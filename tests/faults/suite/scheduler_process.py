"""A scheduler process: a `Scheduler.connect` with traffic, which says what it asks for before and what it got after.

It is begun with what a killed one of its name left: claims that it holds, and requests whose outcome it never heard.
"""

import asyncio
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, is_dataclass
from random import Random
from typing import Any

import structlog

from redsched.cache.compare import describe
from redsched.errors import (
    ClaimState,
    NotConfirmed,
    NoValidHost,
    QuotaExceeded,
    RedschedError,
    Refused,
    Unavailable,
    Unknown,
)
from redsched.model import Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.faults.suite import traffic
from tests.faults.suite.speech import Ear, say, shift_clock
from tests.support.racers import mirror_of

WORKERS = 3
PAUSE_S = 0.02
TOLD_FRAMES = 6
AGAIN_S = (0.05, 0.2)
"""Before asking again after an error that says so."""

GIVE, LOOK, CHANGE = 0.4, 0.08, 0.08
"""How often a turn gives a claim back, how often it only looks, and how often it resizes or moves one."""


class Traffic:
    """What one scheduler process has under way."""

    def __init__(self, scheduler: Scheduler, words: dict[str, Any]) -> None:
        self._scheduler = scheduler
        self._name: str = words["name"]
        self._rng = Random(f"{words['seed']} {self._name} {words['number']}")
        self._held: deque[str] = deque(words["held"])
        self._asked: deque[tuple[str, ...]] = deque(tuple(ids) for ids in words["asked"])
        self._given: deque[str] = deque(words["giving"])
        self._number: int = words["number"]
        self._goes_on = asyncio.Event()
        self._workers = [asyncio.create_task(self._work()) for _ in range(WORKERS)]
        self._busy = 0

    async def play(self) -> None:
        """Ask and give back until told to rest."""
        self._goes_on.set()

    async def rest(self) -> None:
        """Return when nothing is under way, and every request has its outcome."""
        self._goes_on.clear()
        while self._busy:  # noqa: ASYNC110 - every worker may begin and end a turn meanwhile
            await asyncio.sleep(PAUSE_S)
        while self._asked:
            await self._ask(self._asked.popleft())
        while self._given:
            await self._give(self._given.popleft())
        say("resting")

    async def release(self) -> None:
        """Give everything back."""
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
        elif chance < LOOK:
            await self._look()
        elif self._held and chance < LOOK + CHANGE:
            self._held.rotate(self._rng.randrange(len(self._held)))
            await self._change(self._held.popleft())
        elif self._held and (chance < LOOK + CHANGE + GIVE or len(self._held) >= traffic.MOST_HELD):
            self._held.rotate(self._rng.randrange(len(self._held)))
            await self._give(self._held.popleft())
        else:
            self._number += 1
            await self._ask(traffic.next_ids(self._rng, self._name, self._number))

    async def _ask(self, ids: tuple[str, ...]) -> None:
        say("asked", ids=ids, number=self._number)
        try:
            found = await self._until_answered(lambda: self._scheduler.select(traffic.request_of(ids)))
        except (NoValidHost, QuotaExceeded):
            say("refused", ids=ids)
        except (ClaimState, NotConfirmed) as error:
            say("over", ids=ids, why=error.problem)
        else:
            self._held.extend(ids)
            until = traffic.KINDS[traffic.kind_of(ids[0])].until
            tokens = [one.token for one in found.selections]
            say("placed", ids=ids, hosts=[one.host for one in found.selections], tokens=tokens, until=until)

    async def _give(self, claim_id: str) -> None:
        say("giving", id=claim_id)
        try:
            is_free = await self._until_answered(lambda: self._scheduler.claims.release(claim_id), Unknown)
        except (Unknown, ClaimState) as error:
            say("gave", id=claim_id, how=error.problem)
        else:
            say("gave", id=claim_id, how="free" if is_free else "ending")

    async def _change(self, claim_id: str) -> None:
        """Resize it or move it, once: nothing is promised but that it stays its owner's."""
        try:
            token = (await self._scheduler.claims.get(claim_id)).token
            if traffic.kind_of(claim_id) in traffic.RESIZED and self._rng.random() < 0.5:
                await self._scheduler.claims.resize(claim_id, token, {}, {"VCPU": self._rng.choice((1, 2))})
            else:
                await self._scheduler.claims.move(claim_id, token)
        except (Refused, Unknown):
            say("looked")
        except Unavailable as error:
            say("trouble", error=type(error).__name__)
        else:
            say("changed", id=claim_id)
        finally:
            self._held.append(claim_id)

    async def _look(self) -> None:
        """Explain and try out: what claims nothing must leave nothing."""
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

    async def _until_answered(self, call: Callable[[], Awaitable[Any]], *answers: type[RedschedError]) -> Any:
        """Call as often as it takes. `Unknown` is no answer to a request: the group is declared anew in a moment."""
        while True:
            try:
                return await call()
            except answers:
                raise
            except (Unavailable, Unknown) as error:
                say("trouble", error=type(error).__name__)
            await asyncio.sleep(self._rng.uniform(*AGAIN_S))


async def picture(scheduler: Scheduler) -> None:
    """Say all that the columns hold, caught up, thing by thing."""
    mirror = mirror_of(scheduler)
    try:
        await mirror.catch_up()
    except Unavailable as error:
        say("picture", problem=error.detail)
        return
    columns = mirror.columns
    hosts = {name: {key: _plain(value) for key, value in describe(columns, name).items()} for name in columns.names()}
    declared = {
        name: {key: _plain(value) for key, value in one.items()} for name, one in columns.declared.describe().items()
    }
    say("picture", epoch=columns.epoch, seq=mirror.seq, hosts=hosts, declared=declared)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value if isinstance(value, bool | int | float | str) else str(value)


async def audit(scheduler: Scheduler) -> None:
    """Say what redsched's own audit finds."""
    try:
        report = await scheduler.audit()
    except Unavailable as error:
        say("audit", problems=[error.detail])
        return
    say("audit", problems=[f"{one.invariant} {one.thing}: {one.detail}" for one in report.problems])


async def main() -> None:
    """Serve until the input ends."""
    ear = Ear()
    await ear.open()
    words = await ear.hear()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    shift_clock(words["clock_shift_s"])
    async with Scheduler.connect(words["url"], Settings(**words["settings"])) as scheduler:
        at_work = Traffic(scheduler, words)
        orders: dict[str, Callable[[], Awaitable[None]]] = {
            "play": at_work.play,
            "rest": at_work.rest,
            "release": at_work.release,
            "picture": lambda: picture(scheduler),
            "audit": lambda: audit(scheduler),
        }
        say("ready")
        under_way = set[asyncio.Task[None]]()
        while True:
            order = orders[(await ear.hear())["do"]]()
            task = asyncio.ensure_future(order)
            under_way.add(task)
            task.add_done_callback(_ended)
            task.add_done_callback(under_way.discard)


def _ended(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        say("defect", error=repr(error))


if __name__ == "__main__":
    asyncio.run(main())
