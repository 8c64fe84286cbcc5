"""A script call in flight: its command, its deadline and its result."""

import asyncio
from dataclasses import dataclass

from redis.asyncio import BlockingConnectionPool

from redsched.errors import OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.store.client.scripts import Script
from redsched.store.codec.wire import Reply
from redsched.store.topology.connection import to_redsched_error
from redsched.store.topology.url import without_password


@dataclass(slots=True, eq=False)
class Call:
    """A script call in flight. `reply` is set once, to the script's reply or to an error of this project."""

    script: Script
    keys: tuple[str, ...]
    command: tuple[str | int, ...]
    deadline: float
    reply: asyncio.Future[Reply]
    url: str
    durable: bool = False
    """Whether the reply must wait until replicas or a disk have the writes."""
    answer: Reply | None = None
    """The script's reply, once it has been read."""
    maybe_run: bool = False
    """Whether it was sent at least once."""
    unanswered: bool = False
    """Whether an attempt got no reply: it may have been executed, even if later attempts are refused."""
    tries: int = 0
    """How often a server replied that another one is responsible, or that it is not ready."""
    asking: BlockingConnectionPool | None = None
    """The pool of the server that an ASK redirect named; the next attempt goes there, after ASKING."""

    def resolve(self) -> None:
        """Pass the script's reply to the caller."""
        if self.answer is not None and not self.reply.done():
            self.reply.set_result(self.answer)

    def fail(self, error: BaseException) -> None:
        """Pass an error to the caller."""
        if not self.reply.done():
            self.reply.set_exception(error)

    def refused(self, error: RedschedError) -> None:
        """Pass the server's refusal to the caller; OutcomeUnknown if an earlier attempt may have been executed."""
        self.fail(self._unknown(error) if self.unanswered else error)

    def lost(self, error: BaseException) -> None:
        """Fail the call because no reply came."""
        self.fail(self._unknown(error) if self.maybe_run else to_redsched_error(error, self.url))

    def closed(self) -> None:
        """Fail the call because this process is closing its connections."""
        self.fail(self._unknown(closing()) if self.maybe_run else closing())

    def _unknown(self, error: BaseException) -> OutcomeUnknown:
        sent = f"{self.script.name} was sent to the store"
        step = "send it again with the same id to learn its outcome"
        return OutcomeUnknown(
            f"{sent} at {without_password(self.url)} and no reply came: {error}; {step}",
            public=f"{sent} and no reply came: {step}",
        )


def closing() -> StoreUnavailable:
    """Return the error for calls made after the connection was closed."""
    return StoreUnavailable("this process has closed its connection to the store")
