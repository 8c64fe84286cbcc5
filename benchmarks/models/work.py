"""The fleet, the requests and the options of a run. Everything follows from the options and the seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

FLAVORS: tuple[Mapping[str, int], ...] = (
    {"VCPU": 1, "MEMORY_MB": 2048},
    {"VCPU": 2, "MEMORY_MB": 4096},
    {"VCPU": 2, "MEMORY_MB": 8192},
    {"VCPU": 4, "MEMORY_MB": 8192},
    {"VCPU": 4, "MEMORY_MB": 16384},
)
CLASSES = ("VCPU", "MEMORY_MB")


@dataclass(frozen=True, slots=True)
class HostSpec:
    """A host and its capacity by resource class."""

    name: str
    capacity: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for one place."""

    claim_id: str
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Setup:
    """A run, as every process gets it. `folder` holds the sockets of the host process and of services.

    A claim takes `host_delay_s` on its way to the host and back; a peer's read of all hosts takes `database_s` longer
    than the store needs. The first host is a random one of the `pick_from` best. `concurrency` is the number of
    requests that one scheduler works on at once.
    """

    model: str
    store_url: str
    folder: str
    hosts: tuple[HostSpec, ...]
    asks: tuple[Ask, ...]
    schedulers: int = 1
    seed: int = 1
    host_delay_s: float = 0.005
    database_s: float = 0.0
    pick_from: int = 4
    cache_s: float = 1.0
    concurrency: int = 8
    time_limit_s: float = 60.0

    @property
    def hosts_socket(self) -> str:
        """Return the path of the host process's socket."""
        return f"{self.folder}/hosts.sock"

    def service_socket(self, number: int) -> str:
        """Return the path of the socket of a service."""
        return f"{self.folder}/service-{number}.sock"

    def asks_of(self, scheduler: int) -> tuple[Ask, ...]:
        """Return the requests of one scheduler: each gets every n-th, in order."""
        return self.asks[scheduler :: self.schedulers]


def make_asks(count: int, seed: int, flavors: Sequence[Mapping[str, int]] = FLAVORS) -> tuple[Ask, ...]:
    """Return requests of random flavors."""
    rng = Random(seed)
    return tuple(Ask(f"r{number:06d}", rng.choice(flavors)) for number in range(count))


def make_fleet(count: int, asks: Sequence[Ask], fill: float) -> tuple[HostSpec, ...]:
    """Return equal hosts that the requests fill to this fraction, each with room for any request at least."""
    capacity = {}
    for resource_class in CLASSES:
        amounts = [ask.amounts[resource_class] for ask in asks]
        capacity[resource_class] = max(math.ceil(sum(amounts) / fill / count), *amounts)
    return tuple(HostSpec(f"h{number:05d}", capacity) for number in range(count))
