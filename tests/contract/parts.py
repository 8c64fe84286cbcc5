"""A contract: what an operation does on one fleet, it does on the other, a scheduler on a store or a client of an API.

A case is a coroutine that calls its operation on a fleet. It is played on both, each over the same hosts in an empty
store. The results and the errors of both must be equal, but for what `DIFFERS` and `comparable` name.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from typing import Any

import pytest

from redsched.client import AsyncClient
from redsched.errors import RedschedError
from redsched.model import Amounts, HostReport, Inventory, Request
from redsched.model.record import adapter
from redsched.model.records.selections import ClaimedPlace, ClaimedPlaces, Selection, Selections
from redsched.operations.operation import BaseOperation
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.support.plain_client import plain_client
from tests.support.processes.served_api import serving

Fleet = Scheduler | AsyncClient
Operation = BaseOperation[Any, Any]

HOSTS = (
    HostReport(
        "h1",
        {"VCPU": Inventory(8), "MEMORY_MB": Inventory(16_384, 384)},
        zone="az1",
        labels={"rack": "r1"},
        traits=frozenset({"HW_CPU_X86_AVX2"}),
        lease_s=3600,
    ),
    HostReport("h2", {"VCPU": Inventory(4)}, zone="az2", labels={"rack": "r2"}, lease_s=3600),
)
STALE = "1-a.1"
"""A token that no placement has."""
DIFFERS: Mapping[str, str] = {
    "token": "names the cell's epoch, which is a time",
    "id": "of an event: names the time",
    "actor": "the API says what it knows of its caller",
    "watch": "is a path of the API",
    "memory_bytes": "of the store: changes by itself",
    "schedulers": "in the status: each fleet has another one",
    "slowest": "in the status: of two hosts that have just reported",
}
"""Fields, and facts of errors, whose values differ between both fleets, and why. Times do too: fields in ms."""
NAMES_TIME = re.compile(r"\b\d{13}-[0-9a-f]+([.:]\d+)?")
"""The epoch of a cell, with the number of a placement or of a change, or the id of an event: in cursors and texts."""
WITH_CLAIMS = {ClaimedPlaces: Selections, ClaimedPlace: Selection}
"""Records of a client whose type says that a selection has made claims; a scheduler also selects without."""
SECONDS = re.compile(r"\b\d+ s\b")
"""How long something lasts yet, in texts."""
OF_LINK = ("request_id", "idempotency_key")
"""Fields and facts that are of the link: the request of the API, and how to repeat it."""


@dataclass
class Play:
    """One play of a case: its fleet, and what came of the calls of its operation."""

    operation: Operation
    fleet: Fleet
    outcomes: list[Any] = field(default_factory=list)

    async def does(self, *args: Any, **named: Any) -> Any:
        """Call the operation, note its result and return it."""
        result = await self.operation.on(self.fleet)(*args, **named)
        self.outcomes.append(comparable(result))
        return result

    async def refuses(self, error: type[RedschedError], *args: Any, **named: Any) -> None:
        """Call the operation, and note the error of this class that it raises."""
        with pytest.raises(error) as raised:
            await self.operation.on(self.fleet)(*args, **named)
        self.outcomes.append(_refusal(raised.value))

    async def placed(self, claim_id: str = "mine", amounts: Amounts | None = None, **given: Any) -> Selection:
        """Claim 2 VCPU, or other amounts, and return the selection."""
        asked = Request(amounts or {"VCPU": 2}, claim_ids=(claim_id,), **{"project": "web", **given})
        found: Selections = await self.fleet.select(asked)
        return found.selections[0]


Case = Callable[[Play], Awaitable[None]]
Opened = Callable[[str], Any]
CASES: dict[str, list[Case]] = {}
"""The cases of each operation, by its name."""


def contract(*operations: Operation) -> Callable[[Case], Callable[..., Awaitable[None]]]:
    """Return the decorator that makes a case of these operations a test, which plays it for each on both fleets."""

    def register(case: Case) -> Callable[..., Awaitable[None]]:
        for one in operations:
            CASES.setdefault(one.name, []).append(case)

        @pytest.mark.parametrize("operation", operations, ids=lambda one: one.name)
        async def test(clean_store: str, operation: Operation) -> None:
            of_store = await _played(over_store, clean_store, operation, case)
            of_api = await _played(over_rest, clean_store, operation, case)
            assert of_store, "the case calls its operation nowhere"
            assert of_api == [*map(_as_unreadable, of_store, of_api)]

        test.__doc__ = case.__doc__
        return test

    return register


async def _played(opened: Opened, url: str, operation: Operation, case: Case) -> list[Any]:
    async with opened(url) as fleet:
        play = Play(operation, fleet)
        await case(play)
    return play.outcomes


def _settings(url: str) -> Settings:
    return Settings(redis_url=url, pick_from=1)


@asynccontextmanager
async def over_store(url: str) -> AsyncIterator[Scheduler]:
    """Open a scheduler on a store that has been emptied, with HOSTS."""
    await _prepare(url)
    async with Scheduler.connect(url, _settings(url)) as scheduler:
        yield scheduler


@asynccontextmanager
async def over_rest(url: str) -> AsyncIterator[AsyncClient]:
    """Open a client of an API on a store that has been emptied, with HOSTS."""
    await _prepare(url)
    async with serving(_settings(url)) as api, AsyncClient(api, retry_s=0) as client:
        yield client


async def _prepare(url: str) -> None:
    with plain_client(url) as raw:
        raw.ask(("FLUSHALL",))
    async with Scheduler.connect(url, _settings(url), on_demand=True) as scheduler:
        await scheduler.init()
        for one in HOSTS:
            await scheduler.hosts.report(one)


def comparable(value: Any, name: str = "") -> Any:
    """Return a value so that equal ones have the same types too, without what differs between two fleets."""
    if name in DIFFERS or (value and name.endswith("_ms")):
        return "different"
    if isinstance(value, RedschedError):
        return _refusal(value)
    if is_dataclass(value) and not isinstance(value, type):
        kind = WITH_CLAIMS.get(type(value), type(value))
        shown = adapter(kind).dump_python(value)  # without what JSON does not show
        return kind.__name__, comparable({name: getattr(value, name) for name in shown})
    if isinstance(value, Mapping):
        return {key: comparable(one, key) for key, one in value.items() if key not in OF_LINK}
    if isinstance(value, Enum | int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, Set):
        return "set", sorted(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [comparable(one) for one in value]
    return type(value).__name__, NAMES_TIME.sub("time", value) if isinstance(value, str) else value


def _refusal(error: RedschedError) -> Any:
    """Return the class of an error, its text for callers of the API and its facts."""
    return type(error).__name__, comparable(SECONDS.sub("some s", error.public)), comparable(error.facts)[1]


def _as_unreadable(of_store: Any, of_api: Any) -> Any:
    """Return the outcome on a store; what the API could not read, it may refuse in words of its own."""
    both = of_store[0] == of_api[0] == "InvalidRequest"
    return of_api if both and "errors" in of_api[2] and _is_about_the_same(of_store, of_api) else of_store


def _is_about_the_same(of_store: Any, of_api: Any) -> bool:
    """Return whether the text of a store names the field, or the value, of one of the errors of the API."""
    (_, text), (_, errors) = of_store[1], of_api[2]["errors"]
    for _, error in errors:
        (_, name), (_, message) = error["field"], error["message"]
        value = message.rpartition(", not ")[2].strip("'").partition("=")[0]
        if value in text or any(word in text for word in re.findall(r"[a-z_]{4,}", name)):
            return True
    return False
