"""What deciding and explaining answer, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.model import Candidate, ClaimRule, Exceeded
from redsched.model.record import record


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many hosts a reason removed; each host counts once, under the first reason that removed it."""

    reason: str
    hosts: int


@record
class Place:
    """One place that is asked for: where it may go, best first after the first, which is the chosen one.

    A host may be there twice, with other pools. `member` is the gang's member that it is for; `group` the server group
    that it counts in.
    """

    candidates: tuple[Candidate, ...]
    member: str = ""
    group: str = ""

    @property
    def chosen(self) -> Candidate:
        """The candidate that is tried first."""
        return self.candidates[0]


@record
class Decision:
    """Where a request may go, or why nowhere.

    `places` has one for each place asked for (of an incremental request, for as many as there is room for); it is empty
    when the request is refused, and only then are there `reasons`. `rules` are what must hold of the places together
    when they are claimed. `alternates` fit too, best first, and are no place's first candidate; there are `count` more
    than asked for (as far as hosts fit), so that those which were claimed in the end can be left out. `score` is that
    of the best host: higher is better, comparable between cells. `fits` of `hosts` hosts may take a place: 0 when
    refused.
    """

    places: tuple[Place, ...]
    alternates: tuple[str, ...]
    score: float
    hosts: int
    fits: int
    reasons: tuple[ReasonCount, ...] = ()
    rules: tuple[ClaimRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A host that nearly takes the request: by class, what is needed and what is free (below 0: the host is over).

    `changes` are what together would make it take one place, each in words and tried by deciding again; () where no
    such was found. Misses sort by `distance`: how many rules that are not about amounts the host fails, and
    its relative lack of amounts, summed over the classes.
    """

    host: str
    needs: Mapping[str, int]
    free: Mapping[str, int]
    changes: tuple[str, ...] = ()
    distance: tuple[int, float] = field(default=(0, 0.0), compare=False)
    after: str = ""
    """A claim after whose end the host would take one place as it was asked for; '' where none was found."""
    member: str = ""
    """The gang's member of which it would take one place; '' where there are no members."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a host, by its reason; `detail` has the numbers."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Every check of one host. `reason` is the first that failed; None when the host fits."""

    host: str
    reason: str | None
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a decision comes about: the counts over all hosts, the nearest misses, and the checks of a named host.

    In a large fleet not all hosts' pools are searched only to be counted: `unsearched` of the hosts that fit pass
    every rule, and their pools may yet fail. So `fits` are at most, and `pools` among the reasons at least so many.
    `exceeded` is what the quota of the project does not allow, whatever fits; None while hosts may still bring back
    claims that count.
    """

    hosts: int
    fits: int
    reasons: tuple[ReasonCount, ...]
    nearest: tuple[Miss, ...]
    checks: tuple[HostCheck, ...] = ()
    unsearched: int = 0
    exceeded: tuple[Exceeded, ...] | None = ()
