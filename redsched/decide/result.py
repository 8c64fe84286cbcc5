"""The results of decisions and explanations, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.model import Candidate, ClaimRule, Exceeded
from redsched.model.record import record


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """The number of hosts rejected for a reason. Each host counts once, under the first reason that rejected it."""

    reason: str
    hosts: int


@record
class Place:
    """One requested place: its candidates, the chosen one first, then the others, best first.

    A host may occur twice, with different pools. `member` is the gang member it belongs to; `group` the server group
    that counts it.
    """

    candidates: tuple[Candidate, ...]
    member: str = ""
    group: str = ""

    @property
    def chosen(self) -> Candidate:
        """The candidate to try first."""
        return self.candidates[0]


@record
class Decision:
    """The places that a request may get, or the reasons why it gets none.

    `places` has one entry per requested place (for an incremental request, as many as there is room for); it is empty
    if the request is refused, and only then are there `reasons`. `rules` must hold for the places together when they
    are claimed. `alternates` also fit, best first, and are no place's first candidate; there are `count` more than
    requested (if enough hosts fit), so that those claimed in the end can be left out. `score` is that of the best host:
    higher is better, comparable between cells. `fits` of `hosts` hosts may take a place: 0 if refused.
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
    """A host that nearly takes the request: what it needs and has free, by class (below 0: the host is overcommitted).

    `changes`, together, would make it take one place; each is a text, and was tested by a decision; () if none were
    found. Misses sort by `distance`: the number of failed rules that are not about amounts, then the relative lack of
    amounts, summed over the classes.
    """

    host: str
    needs: Mapping[str, int]
    free: Mapping[str, int]
    changes: tuple[str, ...] = ()
    distance: tuple[int, float] = field(default=(0, 0.0), compare=False)
    after: str = ""
    """A claim whose end would make the host take one place of the unchanged request; '' if none was found."""
    member: str = ""
    """The gang member of which it would take one place; '' if there are no members."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a host, named by its reason; `detail` has the numbers."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Every check of one host. `reason` is the first that failed; None if the host fits."""

    host: str
    reason: str | None
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a decision: the counts over all hosts, the nearest misses, and the checks of named hosts.

    In a large fleet not every host's pools are searched for the counts alone: `unsearched` of the hosts that fit pass
    every rule, but their pools may fail. So `fits` is an upper bound, and the count of the reason `pools` a lower one.
    With `cut_short`, the search for changes that would help took too long, and some that there are may be missing.
    `exceeded` has the limits of the project's quota that the request exceeds, independently of the hosts; None while
    hosts may still restore claims that count.
    """

    hosts: int
    fits: int
    reasons: tuple[ReasonCount, ...]
    nearest: tuple[Miss, ...]
    checks: tuple[HostCheck, ...] = ()
    unsearched: int = 0
    exceeded: tuple[Exceeded, ...] | None = ()
    cut_short: bool = False
