"""What a model consists of."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from benchmarks.models.hosts import Publisher, Silent
from benchmarks.models.rpc import Caller
from benchmarks.models.work import Ask, Setup


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one request. `host` is '' if it was refused.

    `retries` counts claim calls after the first; `lost` the hosts, candidates or generations that another request had
    taken first.
    """

    host: str
    retries: int = 0
    lost: int = 0


class Scheduler(Protocol):
    """One scheduler of a model."""

    async def place(self, ask: Ask) -> Outcome:
        """Return once the place is surely the request's, or the request is refused."""


Connect = Callable[[Setup, int, Caller], AbstractAsyncContextManager[Scheduler]]
"""Returns a scheduler, given its number and a connection to the host process."""
Publishing = Callable[[Setup], AbstractAsyncContextManager[Publisher]]
Serving = Callable[[Setup, int], AbstractAsyncContextManager[None]]
"""Runs one process of a service, given its number."""


@contextlib.asynccontextmanager
async def silent(_: Setup) -> AsyncIterator[Publisher]:
    """Have hosts publish nothing."""
    yield Silent()


async def nothing(_: Setup) -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True)
class Model:
    """A scheduling model.

    `prepare` fills the store with the fleet; `publishing` is how hosts publish; `serving` runs a central service, if
    there is one, in `services` processes. If `hosts_decide`, hosts answer claims; if not, placed work is delivered to
    them.
    """

    name: str
    about: str
    connect: Connect
    hosts_decide: bool
    prepare: Callable[[Setup], Awaitable[None]] = nothing
    publishing: Publishing = silent
    serving: Serving | None = None
    services: Callable[[Setup], int] = lambda _: 0
