"""What an agent asks of a collector, and the collector of hosts that a file describes.

A collector knows one host: what it has, and how much of it is in use by work that no claim explains. One's own is a
class in the entry point group `redsched.collectors`, called with the settings.
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
    """What a hook named as a claim's work. `pids` maps a pid to its start time, so that a reused pid is not counted.

    `started` has the start mark of each pid that was named, '' for one that was not running then (see processes.py).
    Without `is_watched` an older release has noted the work, and nobody knows whether this machine ever showed it.
    """

    domain: str = ""
    cgroup: str = ""
    pids: Mapping[int, float] = field(default_factory=dict)
    started: Mapping[int, str] = field(default_factory=dict)
    is_watched: bool = True


@dataclass(frozen=True, slots=True)
class Work:
    """A placement that this host holds, and what its hook named; None when no hook named anything.

    Two of them can be of one claim: `placed` tells them apart.
    """

    claim_id: str
    named: Named | None = None
    placed: str = ""


@dataclass(frozen=True, slots=True)
class LocalWork:
    """Work that runs on the host though nobody has claimed for it: its own amounts become a claim under this id.

    `named` as a hook would name it: without, what it uses counts as external too.
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
            raise InvalidRequest(f"local work {self.id!r} holds nothing: name its amounts by slot")
        for slot, amount in self.amounts.items():
            check_amount(check_slot(slot), amount, minimum=1)


@dataclass(frozen=True, slots=True)
class Observation:
    """One look at a host.

    `report` holds what the host has; its `external` is what was declared. `unexplained` is measured usage minus the
    measured usage of the claims' own work. `trusted` names the slots where that difference means something: where
    usage was measured, and the work of every claim could be told apart. `local` is all local work that runs now: the
    claims of what is not named any more end.
    """

    report: HostReport
    unexplained: Amounts = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    local: tuple[LocalWork, ...] = ()


class Collector(Protocol):
    """Knows one host. `look` may block: it is called in a thread unless `period_s` is None."""

    @property
    def name(self) -> str:
        """The host's name, as its reports say."""
        ...

    @property
    def cell(self) -> str:
        """The cell that the host belongs to, as its reports say."""
        ...

    @property
    def period_s(self) -> float | None:
        """Pause between two looks. None: what it says never changes, so one look is enough."""
        ...

    def look(self, works: Sequence[Work]) -> Observation:
        """Look at the host now; `works` are the placements it holds. Raises OSError when the host cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class StaticCollector:
    """A host that is as it was described: nothing is measured, external usage is what was declared."""

    report: HostReport
    name: str = field(init=False)
    cell: str = field(init=False)
    period_s: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.report.name)
        object.__setattr__(self, "cell", self.report.cell)

    def look(self, works: Sequence[Work]) -> Observation:  # noqa: ARG002 - the protocol's signature
        """Say what the description says."""
        return Observation(self.report)


def load_collector(name: str, settings: Settings) -> Collector:
    """Make the collector of the entry point `name`. Raises InvalidRequest when there is none or it is broken."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise InvalidRequest(f"no collector {name!r} in the entry points {GROUP!r}: there are {known}")
    try:
        return cast(Collector, found[name].load()(settings))
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidRequest(f"collector {name!r} ({found[name].value}) cannot be made: {error}") from error
