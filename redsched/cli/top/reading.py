"""What `redsched top` reads of a fleet, and how often: reading takes at most a tenth of the time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from redsched.cli.fleet import Fleet
from redsched.errors import RedschedError
from redsched.model import Claim
from redsched.model.filters import EventFilter
from redsched.model.records.capacity import CapacityRow
from redsched.model.records.events import Event
from redsched.model.records.hosts import HostView
from redsched.model.records.status import StatusReport

T = TypeVar("T")

IDLE_FACTOR = 9
"""A read is repeated at the earliest after this many times as long as it took."""
IDLE_FACTOR_FAILED = 1
"""The same for a read that failed: it mostly waited, and people wait for the store to be there again."""
PAGE = 1000
EVENTS = 20
CLAIMS = 100
"""The most claims of a host that its screen lists."""


@dataclass(frozen=True, slots=True)
class State:
    """The status, the amounts by class, and the latest events."""

    report: StatusReport
    capacity: Sequence[CapacityRow]
    events: Sequence[Event]


async def read_state(fleet: Fleet) -> State:
    """Return the state of the fleet."""
    return State(await fleet.status(), await fleet.capacity(), await fleet.events.newest(EVENTS, EventFilter()))


async def read_hosts(fleet: Fleet) -> Sequence[HostView]:
    """Return all hosts."""
    found: list[HostView] = []
    after: str | None = ""
    while after is not None:
        page = await fleet.hosts.list(limit=PAGE, after=after)
        found += page.items
        after = page.next
    return found


@dataclass(frozen=True, slots=True)
class HostState:
    """A host, and its first claims."""

    view: HostView
    claims: Sequence[Claim]


async def read_host(fleet: Fleet, name: str) -> HostState:
    """Return a host. Raises NotFound for an unknown one."""
    return HostState(await fleet.hosts.get(name), (await fleet.claims.list(host=name, limit=CLAIMS)).items)


async def repeat(
    read: Callable[[], Awaitable[T]],
    show: Callable[[T], None],
    fail: Callable[[RedschedError], None],
    end: Callable[[Exception], None],
    every_s: float,
) -> None:
    """Read and show again and again, every `every_s` seconds or less often if reading takes long.

    `fail` is called with the error of a read, and the next read comes soon. After any other exception it calls `end`
    with it and returns.
    """
    while True:
        began_s, factor = time.monotonic(), IDLE_FACTOR
        try:
            show(await read())
        except RedschedError as error:
            fail(error)
            factor = IDLE_FACTOR_FAILED
        except Exception as error:
            return end(error)
        await asyncio.sleep(max(every_s, factor * (time.monotonic() - began_s)))
