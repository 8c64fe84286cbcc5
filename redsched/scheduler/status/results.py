"""The status of a store and its cells, as plain data. Times are Unix ms by the store's clock, ages in ms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MAX_NAMED = 100
"""The most hosts or claims that one problem names; their number is always given."""


@dataclass(frozen=True, slots=True)
class StatusProblem:
    """Something that is wrong, or stuck: `kind` names it for programs, `detail` says what and why.

    `about`: the first hosts or claims concerned, of `count` in all. `advice`: what to do; `commands`: what to run.
    `cell` is empty for problems of the store.
    """

    kind: str
    cell: str
    detail: str
    advice: str
    commands: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server of the store. `role`: `primary` or `replica`. `max_memory_bytes`: 0 if it has no limit.

    `append_only`: whether it appends each write to a file. `saved`: whether its last write to disk succeeded.
    """

    name: str
    version: str
    role: str
    replicas: int
    memory_bytes: int
    max_memory_bytes: int
    memory_policy: str
    append_only: bool
    saved: bool
    primary: str = ""
    """For a replica: the address of its primary."""
    is_linked: bool = True
    """For a replica: whether it is connected to its primary."""
    is_full: bool = False
    """Whether it refuses what needs more memory."""


@dataclass(frozen=True, slots=True)
class SchedulerStatus:
    """A scheduler that runs. `lag_ms`: how far its replica was behind when it last announced itself, `seen_ms` ago."""

    id: str
    version: str
    node: str
    pid: int
    lag_ms: int
    seen_ms: int


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Numbers of hosts. Each is in `total`; `up`, `down` and `written_off` add up to it.

    `unattested`: hosts that have not attested to the epoch; `with_agent`: those that an agent reports.
    """

    total: int = 0
    up: int = 0
    down: int = 0
    written_off: int = 0
    unattested: int = 0
    disabled: int = 0
    draining: int = 0
    with_agent: int = 0
    slowest: str = ""
    """The host that is up and was heard of least recently."""
    slowest_ms: int = 0
    """How long ago that was."""
    agent_versions: Mapping[str, int] = field(default_factory=dict)
    """The number of agents of each release; '' for those that do not tell theirs."""


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """The last check of a cell by a scheduler: problems left and repaired, and the first of those left."""

    at_ms: int
    hosts: int
    claims: int
    broken: int
    repaired: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosedHost:
    """A host that takes no claims because of its `status`: disabled or draining. `reason`: why, if that is known.

    `claims`: those that are left there; `moves`: whether schedulers move them to other hosts.
    """

    name: str
    status: str
    claims: int
    moves: bool
    reason: str


@dataclass(frozen=True, slots=True)
class CellStatus:
    """A cell. `settle_at_ms`: when it settles at the latest, None if it is settled.

    `claims` has placements by state, and pending and shelved claims. `at_least`: the states of which only the first
    were counted. `closed`: the first hosts that an operator has closed, those with the most claims first.
    """

    name: str
    epoch: str = ""
    epoch_began_ms: int = 0
    """When the store last restarted, failed over or lost data: the time of the first write after that."""
    now_ms: int = 0
    settled: bool = False
    settle_at_ms: int | None = None
    unattested: int = 0
    hosts: HostCounts = HostCounts()
    claims: Mapping[str, int] = field(default_factory=dict)
    at_least: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    closed: tuple[ClosedHost, ...] = ()
    schedulers: tuple[SchedulerStatus, ...] = ()
    audit: AuditStatus | None = None


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The state of the servers and the cells, and what is wrong: the most serious problem first.

    `durability`: what claims wait for, by the settings of the caller.
    """

    servers: Sequence[ServerStatus]
    durability: str
    cells: Sequence[CellStatus]
    problems: Sequence[StatusProblem]

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def problem_about(
    kind: str, cell: str, about: Iterable[str], detail: str, advice: str, commands: tuple[str, ...] = ()
) -> StatusProblem:
    """Return a problem about hosts or claims, of which the first are named."""
    names = tuple(about)
    return StatusProblem(kind, cell, detail, advice, commands, names[:MAX_NAMED], len(names))


def duration(ms: int) -> str:
    """Format a duration with its largest unit: `45 s`, `12 min`, `3 h`, `4 days`."""
    seconds = max(0, ms) // 1000
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 172_800 else f"{seconds // 86_400} days"


def raise_command(above: str) -> str:
    """Return the command that starts an epoch above a given one."""
    return f"redsched init --above {above}"


def counted(number: int, what: str) -> str:
    """Return the number of things: `1 host`, `3 hosts`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def are(names: Sequence[str], what: str) -> str:
    """Return the number of things with the verb: `1 host is`, `3 hosts are`."""
    return f"{counted(len(names), what)} {'is' if len(names) == 1 else 'are'}"


def named(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are: `h1, h2 and 7 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
