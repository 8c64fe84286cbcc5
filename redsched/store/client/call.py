"""One call of a script on its way: what is sent, until when, and what became of it."""

import asyncio
from dataclasses import dataclass

from redis.asyncio import BlockingConnectionPool

from redsched.errors import OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.store.client.scripts import Script
from redsched.store.codec.wire import Reply
from redsched.store.topology.connection import as_ours
from redsched.store.topology.url import without_password

"""What a script returns: a flat array, its first value the outcome's word."""


@dataclass(slots=True, eq=False)
class Call:
    """Somebody waits for `reply`, which gets a result or an error of this project once."""

    script: Script
    keys: tuple[str, ...]
    command: tuple[str | int, ...]
    deadline: float
    reply: asyncio.Future[Reply]
    url: str
    durable: bool = False
    """Its reply counts only once replicas or a disk have what it wrote."""
    answer: Reply | None = None
    """What the script said."""
    maybe_run: bool = False
    """It was sent at least once."""
    unanswered: bool = False
    """A sending of it was lost: whatever later ones meet, that one may have been carried out."""
    tries: int = 0
    """How often a server said that it is not the one, or not now."""
    asking: BlockingConnectionPool | None = None
    """Where an ASK sent it: to be said there, once."""

    def resolve(self) -> None:
        """Give the caller the script's answer."""
        if self.answer is not None and not self.reply.done():
            self.reply.set_result(self.answer)

    def fail(self, error: BaseException) -> None:
        """Give the caller an error."""
        if not self.reply.done():
            self.reply.set_exception(error)

    def refused(self, error: RedschedError) -> None:
        """Give the caller the server's refusal, unless an earlier sending may have been carried out."""
        self.fail(self._unknown(error) if self.unanswered else error)

    def lost(self, error: BaseException) -> None:
        """Give up: no answer came."""
        self.fail(self._unknown(error) if self.maybe_run else as_ours(error, self.url))

    def closed(self) -> None:
        """Give up: this process closes its connections."""
        self.fail(self._unknown(closing()) if self.maybe_run else closing())

    def _unknown(self, error: BaseException) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self.script.name} was sent to the store at {without_password(self.url)} and no answer came: {error}; "
            "send it again with the same id to learn its outcome"
        )


def closing() -> StoreUnavailable:
    """What is said to calls that come too late."""
    return StoreUnavailable("this process has closed its connection to the store")
