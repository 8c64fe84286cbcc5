"""The shared-state prototype (Nova, 2016): hosts push increments to every scheduler, and answer claims.

Each scheduler keeps the state of all hosts in memory. It counts its own decisions at once, and sends each claim to the
host with a seed. The host checks it: an accepted claim goes as an increment to every scheduler, a refused one back to
its sender, which takes its own consumption back and decides again without that host (as Nova's RetryFilter did), up to
3 attempts. Messages for the same scheduler that wait together are sent as one. See message_window.py for lost messages.

Messages go through publish/subscribe of the store, one channel for each scheduler, instead of RabbitMQ.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from benchmarks.models.filter_scheduler import MAX_ATTEMPTS
from benchmarks.models.hosts import Book, Publisher
from benchmarks.models.message_window import MessagesLost, MessageWindow
from benchmarks.models.model import Model, Outcome, Scheduler
from benchmarks.models.published import redis_client
from benchmarks.models.rpc import Caller, Message
from benchmarks.models.views import HostView, make_views, ranked, rng_of
from benchmarks.models.work import CLASSES, Ask, HostSpec, Setup

STATE_TIMEOUT_S = 30.0


def channel(scheduler: int) -> str:
    """Return the channel of a scheduler."""
    return f"benchmark:scheduler:{scheduler}"


class Pipe:
    """The messages from one host to one scheduler: what waits together is sent as one."""

    def __init__(self, host: str) -> None:
        self._host, self._seed = host, 0
        self.waiting: list[Message] = []

    def take(self) -> str:
        """Return everything that waits as one message."""
        self._seed += 1
        items, self.waiting = self.waiting, []
        return json.dumps({"host": self._host, "seed": self._seed, "items": items})


class IncrementPublisher:
    """The hosts' side."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pipes: dict[int, dict[str, Pipe]] = {}
        self._dirty: dict[tuple[int, str], Pipe] = {}
        self._has_work = asyncio.Event()

    async def asked(self, book: Book, message: Message) -> Message:
        """Send the whole state to a scheduler that asks for it; from then on, it gets every increment."""
        number = message["scheduler"]
        pipe = self._pipes.setdefault(number, {}).setdefault(book.spec.name, Pipe(book.spec.name))
        pipe.waiting.clear()
        self._put(number, pipe, book, {"used": dict(book.used)})
        return {}

    async def claimed(self, book: Book, message: Message, accepted: bool) -> None:
        """Send an accepted claim to every scheduler, a refused one to its sender."""
        item = {"from": message["scheduler"], "seed": message["seed"], "amounts": message["amounts"], "ok": accepted}
        for number, pipes in self._pipes.items():
            if book.spec.name in pipes and (accepted or number == message["scheduler"]):
                self._put(number, pipes[book.spec.name], book, item)

    def _put(self, number: int, pipe: Pipe, book: Book, item: Message) -> None:
        pipe.waiting.append(item)
        self._dirty[number, book.spec.name] = pipe
        self._has_work.set()

    async def send(self) -> None:
        """Send what waits, until cancelled. Increments that arrive while messages are sent are merged."""
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            dirty, self._dirty = self._dirty, {}
            sending = self._client.pipeline(transaction=False)
            for (number, _), pipe in dirty.items():
                sending.publish(channel(number), pipe.take())
            await sending.execute()


@contextlib.asynccontextmanager
async def publishing(setup: Setup) -> AsyncIterator[Publisher]:
    """Have hosts push increments."""
    async with redis_client(setup) as client:
        publisher = IncrementPublisher(client)
        sending = asyncio.create_task(publisher.send())
        try:
            yield publisher
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending


class SharedHost:
    """One host as its increments describe it, with this scheduler's own claims that are not answered yet."""

    def __init__(self, spec: HostSpec, view: HostView) -> None:
        self.spec, self.view = spec, view
        self.window = MessageWindow()
        self.pending: dict[int, Mapping[str, int]] = {}

    @property
    def is_known(self) -> bool:
        """Whether a state has arrived, and no message is known to be lost since."""
        return self.window.seed is not None

    def consume(self, seed: int, amounts: Mapping[str, int]) -> None:
        """Count a claim that is about to be sent."""
        self.pending[seed] = amounts
        self.view.consume(amounts)

    def receive(self, message: Message, scheduler: int) -> None:
        """Apply a message. Raises MessagesLost."""
        first, *_ = message["items"]
        if "used" in first:
            self.window.reset(message["seed"])
            self._replace(first["used"])
        elif not self.window.accept(message["seed"]):
            return
        for item in message["items"]:
            if "used" not in item:
                self._apply(item, is_own=item["from"] == scheduler)

    def _replace(self, used: Mapping[str, int]) -> None:
        """Take over a whole state. It may or may not contain the claims that are pending: their answers follow."""
        self.view.used = {kind: used.get(kind, 0) for kind in CLASSES}
        self.pending.clear()

    def _apply(self, item: Message, is_own: bool) -> None:
        counted = is_own and self.pending.pop(item["seed"], None) is not None
        if item["ok"] and not counted:
            self.view.consume(item["amounts"])
        if counted and not item["ok"]:
            self.view.consume(item["amounts"], -1)


class SharedStateScheduler:
    """The schedulers' side."""

    def __init__(self, setup: Setup, number: int, hosts: Caller) -> None:
        self._number, self._hosts, self._rng, self._pick_from = number, hosts, rng_of(setup, number), setup.pick_from
        views = make_views(setup.hosts)
        self.shared = {spec.name: SharedHost(spec, views[spec.name]) for spec in setup.hosts}
        self._seeds = itertools.count(1)
        self._unknown = set(self.shared)
        self._all_known = asyncio.Event()

    async def place(self, ask: Ask) -> Outcome:
        """Decide and claim, up to three times."""
        tried: list[str] = []
        while len(tried) < MAX_ATTEMPTS:
            views = [one.view for one in self.shared.values() if one.is_known and one.spec.name not in tried]
            best = ranked(views, ask.amounts, self._rng, self._pick_from, 1)
            if not best:
                break
            if await self._claim(ask, self.shared[best[0].name]):
                return Outcome(best[0].name, len(tried), len(tried))
            tried.append(best[0].name)
        return Outcome("", max(0, len(tried) - 1), len(tried))

    async def _claim(self, ask: Ask, host: SharedHost) -> bool:
        seed = next(self._seeds)
        host.consume(seed, ask.amounts)
        about = {"host": host.spec.name, "claim_id": ask.claim_id, "amounts": ask.amounts}
        reply = await self._hosts.call("claim", **about, scheduler=self._number, seed=seed)
        return bool(reply["accepted"])

    async def ask_for_state(self, host: str) -> None:
        """Ask a host for its whole state."""
        await self._hosts.call("state", host=host, scheduler=self._number)

    async def follow(self, subscription: Any) -> None:
        """Apply messages until cancelled."""
        async for received in subscription.listen():
            if received["type"] == "message":
                await self.receive(json.loads(received["data"]))

    async def receive(self, message: Message) -> None:
        """Apply a message; ask for the whole state if it shows that others were lost."""
        try:
            self.shared[message["host"]].receive(message, self._number)
        except MessagesLost:
            await self.ask_for_state(message["host"])
        self._unknown.discard(message["host"])
        if not self._unknown:
            self._all_known.set()

    async def ready(self) -> None:
        """Wait for the state of every host."""
        async with asyncio.timeout(STATE_TIMEOUT_S):
            await self._all_known.wait()


@contextlib.asynccontextmanager
async def connect(setup: Setup, number: int, hosts: Caller) -> AsyncIterator[Scheduler]:
    """Open a scheduler that knows the state of all hosts."""
    scheduler = SharedStateScheduler(setup, number, hosts)
    async with redis_client(setup) as client, client.pubsub() as subscription:
        await subscription.subscribe(channel(number))
        following = asyncio.create_task(scheduler.follow(subscription))
        try:
            await asyncio.gather(*(scheduler.ask_for_state(spec.name) for spec in setup.hosts))
            await scheduler.ready()
            yield scheduler
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following


MODEL = Model(
    "shared-state",
    "hosts push increments to all schedulers, claim on the host (Nova's prototype of 2016)",
    connect,
    hosts_decide=True,
    publishing=publishing,
)
