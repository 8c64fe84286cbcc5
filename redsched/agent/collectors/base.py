"""The protocol of collectors, their observations, and the collector of hosts that a file describes.

A collector observes one host: its inventories, and how much of them is in use by work that belongs to no claim. To add
your own, register a class in the entry point group `redsched.collectors`; it is called with the settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Protocol, cast

from redsched.errors import InvalidRequest
from redsched.model import Amounts, HostReport
from redsched.model.validation import check_amount, check_name, check_slot
from redsched.settings import Settings

GROUP = "redsched.collectors"


@dataclass(frozen=True, slots=True)
class Named:
    """The work of a claim, as its hook named it.

    `pids` maps each pid to its start time, so that a reused pid is not counted. `started` maps each named pid to its
    start mark, '' if it was not running then (see processes.py). Without `is_watched` the entry was written by an older
    release, which did not check that this machine can see the work. `status_file` will have its exit status, and `log`
    has what it prints.
    """

    domain: str = ""
    cgroup: str = ""
    pids: Mapping[int, float] = field(default_factory=dict)
    started: Mapping[int, str] = field(default_factory=dict)
    is_watched: bool = True
    status_file: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class Work:
    """A placement that this host holds, and the work that its hook named (None if it named none).

    Two placements can belong to one claim: `placed` tells them apart. `devices` are the devices that it holds amounts
    of: what its processes use of others belongs to no claim.
    """

    claim_id: str
    named: Named | None = None
    placed: str = ""
    devices: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Work that runs on the host without having been scheduled: its amounts become a claim with this id.

    `named` identifies the work, as a hook would. Without it, the work's usage counts as external usage too.
    """

    id: str
    amounts: Amounts
    project: str = ""
    consumer: str = ""
    named: Named | None = None

    def __post_init__(self) -> None:
        check_name("claim", self.id)
        for what in ("project", "consumer"):
            if getattr(self, what):
                check_name(what, getattr(self, what))
        if not self.amounts:
            raise InvalidRequest(f"local work {self.id!r} has no amounts: give them by slot")
        for slot, amount in self.amounts.items():
            check_amount(check_slot(slot), amount, minimum=1)


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation of a host.

    `report` describes the host; its `external` is the declared usage. `unexplained` is the measured usage minus the
    measured usage of the claims' own work. `trusted` names the slots for which that difference is meaningful: usage was
    measured, and the work of every claim could be identified. `local` is all local work that runs now; the local claims
    of work that is no longer listed end.
    """

    report: HostReport
    unexplained: Amounts = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    local: tuple[LocalWork, ...] = ()


class Collector(Protocol):
    """Observes one host. `look` may block: it is called in a thread unless `period_s` is None."""

    @property
    def name(self) -> str:
        """The host's name, as in its reports."""
        ...

    @property
    def cell(self) -> str:
        """The host's cell, as in its reports."""
        ...

    @property
    def period_s(self) -> float | None:
        """Seconds between two observations. None: they never differ, so one is enough."""
        ...

    def look(self, works: Sequence[Work]) -> Observation:
        """Observe the host now; `works` are the placements that it holds. Raises OSError when it cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class StaticCollector:
    """Reports a host as it was described: nothing is measured, and external usage is as declared."""

    report: HostReport
    name: str = field(init=False)
    cell: str = field(init=False)
    period_s: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.report.name)
        object.__setattr__(self, "cell", self.report.cell)

    def look(self, works: Sequence[Work]) -> Observation:  # noqa: ARG002 - the protocol's signature
        """Return the described host."""
        return Observation(self.report)


def load_collector(name: str, settings: Settings) -> Collector:
    """Create the collector of the entry point `name`. Raises InvalidRequest when there is none or it is broken."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise InvalidRequest(f"unknown collector {name!r}: the entry points {GROUP!r} have {known}")
    try:
        return cast(Collector, found[name].load()(settings))
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidRequest(f"collector {name!r} ({found[name].value}) cannot be created: {error}") from error
