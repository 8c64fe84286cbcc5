"""Claims and releases in cycles, and claims of the last places of a provider, by threads that use any service."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

REFUSALS_IN_A_ROW = 3
"""After so many, a client takes the provider for full."""
AMOUNT = 1
START_TIMEOUT_S = 60.0


class ServiceError(Exception):
    """A service answered with an unexpected status."""


class Claimed(NamedTuple):
    """The outcome of a claim: `claim_id` is '' if it was refused."""

    claim_id: str
    conflicts: int


class Client(Protocol):
    """A connection of one thread."""

    def claim(self, resource_class: str, amount: int) -> Claimed:
        """Claim."""

    def release(self, claim_id: str) -> None:
        """Release."""


class Service(Protocol):
    """What is compared. `many` is a class of all providers, `few` one that only the first has."""

    name: str
    many: str
    few: str

    def client(self, number: int) -> AbstractContextManager[Client]:
        """Open a connection."""

    def fleet(self, providers: int, capacity: int, places: int) -> AbstractContextManager[None]:
        """Create the providers; at the end, delete them and what is claimed of them."""

    def used(self, resource_class: str) -> int:
        """Return the usage of the first provider."""


@dataclass(slots=True)
class Row:
    """One service. Conflicts and refusals are those of all claims; `granted` of `places` on the nearly full provider.

    `over_claims` counts places that were granted beyond the capacity, or that the service itself says are used beyond.
    """

    service: str
    providers: int
    cycles: int
    per_second: float
    claim_p50_ms: float
    claim_p99_ms: float
    conflicts: int
    refused: int
    places: int
    granted: int
    over_claims: int
    full_conflicts: int


@dataclass(slots=True)
class _Done:
    latencies_s: list[float] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    cycles: int = 0
    conflicts: int = 0
    refused: int = 0


def measure(service: Service, providers: int, places: int, clients: int, seconds: float) -> Row:
    """Measure one service. Every client can always have a place of the class `many`. Raises ServiceError, OSError."""
    with service.fleet(providers, clients, places):
        started = time.perf_counter()
        cycles = list(_in_threads(service, clients, lambda client: _cycle(client, service.many, started + seconds)))
        took = time.perf_counter() - started
        full = list(_in_threads(service, clients, lambda client: _fill(client, service.few)))
        over = _over(service, sum(len(one.held) for one in full), places)
    latencies = sorted(second for one in cycles for second in one.latencies_s)
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    count = sum(one.cycles for one in cycles)
    return Row(
        service.name,
        providers,
        count,
        count / took,
        cuts[49] * 1e3,
        cuts[98] * 1e3,
        sum(one.conflicts for one in cycles),
        sum(one.refused for one in cycles),
        places,
        sum(len(one.held) for one in full),
        over,
        sum(one.conflicts for one in full),
    )


def _in_threads(service: Service, clients: int, work: Callable[[Client], _Done]) -> Iterator[_Done]:
    """Run the work in a thread for each client, all at once."""
    together = threading.Barrier(clients)

    def one(number: int) -> _Done:
        with service.client(number) as client:
            together.wait(START_TIMEOUT_S)
            return work(client)

    with ThreadPoolExecutor(clients) as threads:
        yield from threads.map(one, range(clients))


def _cycle(client: Client, resource_class: str, until: float) -> _Done:
    """Claim and release until a time, at least twice."""
    done = _Done()
    while time.perf_counter() < until or len(done.latencies_s) < 2:
        started = time.perf_counter()
        claimed = client.claim(resource_class, AMOUNT)
        done.latencies_s.append(time.perf_counter() - started)
        done.conflicts += claimed.conflicts
        if claimed.claim_id:
            client.release(claimed.claim_id)
            done.cycles += 1
        else:
            done.refused += 1
    return done


def _fill(client: Client, resource_class: str) -> _Done:
    """Claim until the provider is full."""
    done, in_a_row = _Done(), 0
    while in_a_row < REFUSALS_IN_A_ROW:
        claimed = client.claim(resource_class, AMOUNT)
        done.conflicts += claimed.conflicts
        in_a_row = 0 if claimed.claim_id else in_a_row + 1
        done.held += [claimed.claim_id] if claimed.claim_id else []
    return done


def _over(service: Service, granted: int, places: int) -> int:
    return max(0, granted - places, service.used(service.few) - places)
