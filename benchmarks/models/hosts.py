"""The host process: every host as an object with books of its own, which the scheduling models cannot get around.

A claim waits for half of the stated delay on its way to the host and for half of it on its way back. In between, the
host checks it (if the model has hosts decide), enters it in its books and publishes its new state, one claim after the
other, as Nova's resource tracker does under its lock. Models that claim elsewhere deliver the placed work here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.models.rpc import Message, serving
from benchmarks.models.work import HostSpec, Setup


@dataclass(slots=True)
class Book:
    """What one host really runs. `over` describes each entry after which the host was above its capacity."""

    spec: HostSpec
    used: dict[str, int] = field(default_factory=dict)
    claims: dict[str, Mapping[str, int]] = field(default_factory=dict)
    over: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)

    def fits(self, amounts: Mapping[str, int]) -> bool:
        """Return whether the host has room for this."""
        return all(self.used.get(kind, 0) + amount <= self.spec.capacity[kind] for kind, amount in amounts.items())

    def enter(self, claim_id: str, amounts: Mapping[str, int]) -> None:
        """Enter a claim, whether it fits or not. One that is entered already is recorded, and counts once."""
        if claim_id in self.claims:
            self.repeated.append(f"{self.spec.name}: {claim_id} arrived twice")
            return
        self.claims[claim_id] = amounts
        for kind, amount in amounts.items():
            self.used[kind] = self.used.get(kind, 0) + amount
            if self.used[kind] > self.spec.capacity[kind]:
                now, most = self.used[kind], self.spec.capacity[kind]
                self.over.append(f"{self.spec.name}: {claim_id} makes {now} {kind} of {most}")


class Publisher(Protocol):
    """How a model's hosts publish their state."""

    async def claimed(self, book: Book, message: Message, accepted: bool) -> None:
        """Publish the outcome of a claim that a host answered."""

    async def asked(self, book: Book, message: Message) -> Message:
        """Answer a message that only this model's schedulers send."""


class Silent:
    """For models whose hosts publish nothing."""

    async def claimed(self, book: Book, message: Message, accepted: bool) -> None:
        """Publish nothing."""

    async def asked(self, book: Book, message: Message) -> Message:
        """Refuse the message."""
        raise ValueError(f"{book.spec.name} was asked {message['op']!r}, which its model does not know")


class Hosts:
    """All hosts of a run."""

    def __init__(self, setup: Setup, publisher: Publisher, checks: bool = True) -> None:
        self.books = {spec.name: Book(spec) for spec in setup.hosts}
        self._locks = {spec.name: asyncio.Lock() for spec in setup.hosts}
        self._delay_s, self._publisher, self._checks = setup.host_delay_s, publisher, checks
        self._expected, self._everyone = setup.schedulers + 1, asyncio.Event()

    @contextlib.asynccontextmanager
    async def serving(self, path: str) -> AsyncIterator["Hosts"]:
        """Answer messages on this socket."""
        async with serving(path, self.handle):
            yield self

    async def handle(self, message: Message) -> Message:
        """Answer `claim` (check and enter), `deliver` (enter), `start` and `books`; the rest is the model's."""
        match message["op"]:
            case "start":
                return await self._start()
            case "books":
                return self.report()
            case "claim" | "deliver":
                return await self._claim(message)
        return await self._publisher.asked(self.books[message["host"]], message)

    async def _start(self) -> Message:
        """Reply once every scheduler, and whoever measures, has called this."""
        self._expected -= 1
        if not self._expected:
            self._everyone.set()
        await self._everyone.wait()
        return {}

    async def _claim(self, message: Message) -> Message:
        await asyncio.sleep(self._delay_s / 2)
        book = self.books[message["host"]]
        async with self._locks[message["host"]]:
            accepted = message["op"] == "deliver" or not self._checks or book.fits(message["amounts"])
            if accepted:
                book.enter(message["claim_id"], message["amounts"])
            await self._publisher.claimed(book, message, accepted)
        await asyncio.sleep(self._delay_s / 2)
        return {"accepted": accepted}

    def report(self) -> Message:
        """Return the books: the claims of each host, and everything that was wrong with them."""
        books = self.books.values()
        return {
            "claims": {book.spec.name: dict(book.claims) for book in books},
            "over": [one for book in books for one in book.over],
            "repeated": [one for book in books for one in book.repeated],
        }
