"""The results of decisions and explanations, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.model import Candidate, ClaimRule, Exceeded
from redsched.model import RankedHost as RankedHost
from redsched.model import ReasonCount as ReasonCount
from redsched.model.gpus import amount_text
from redsched.model.kept_for import KeptFor
from redsched.model.nearest_names import those_there
from redsched.model.record import record

MAX_ZONES = 10
"""The most zones that a text lists."""
MAX_HOSTS = 5
"""The most unknown hosts that a text lists."""


@record
class Place:
    """One requested place: its candidates, the chosen one first, then the others, best first.

    A host may occur twice, with different pools. `member` is the gang member it belongs to; `group` the server group
    that counts it. `kept` is the text about the decision that its claim keeps; '' for nothing.
    """

    candidates: tuple[Candidate, ...]
    member: str = ""
    group: str = ""
    kept: str = field(default="", compare=False)

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
    claims: Mapping[str, str] = field(default_factory=dict)
    """The claims in the way, each with its project: as few as possible whose end would make the host take one place."""
    other_claims: int = 0
    """The number of further claims in the way, which the caller may not know."""
    both: bool = False
    """Whether the changes help only once the claims in the way have ended."""
    kept: KeptFor | None = None
    """What the host keeps of the classes of the request for a request that waits."""
    member: str = ""
    """The gang member of which it would take one place; '' if there are no members."""
    places: Mapping[str, str] = field(default_factory=dict)
    """By class: the pool, or shared pool, that has what is `free`. Without an entry it is the host itself."""
    total_free: Mapping[str, int] = field(default_factory=dict)
    """By class of groups, cells and devices: what is free in all, with what places have that is too little for one."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """By class of these: what there is, free or not."""


@dataclass(frozen=True, slots=True)
class PlacesMiss:
    """Why hosts that fit one place of a request have too few places for its count.

    `fits` of the `asked` places fit; that count was tested by a decision, and the next one too. `rule` is the reason of
    the rule without which all of them would: `spread:zone`, `server_group`; `count` if no single rule is the cause.
    `says` describes the rule, `without` names it, `by` is its topology. `domains`: for how many places zones or label
    values have room by amounts alone, those with least first.
    """

    asked: int
    fits: int
    rule: str = "count"
    says: str = ""
    without: str = ""
    by: str = ""
    domains: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The rule, the rooms of the domains, and the changes that would help, as one clause."""
        fitting = f"count={self.fits} fits" if self.fits else "no count fits"
        if not self.without:
            return f"the hosts have room for {self.fits} places: {fitting}" if self.fits else fitting
        shown = list(self.domains.items())[:MAX_HOSTS]
        rooms = ", ".join(f"{name} has room for {room}" for name, room in shown)
        more = f" and {len(self.domains) - len(shown)} more" if len(self.domains) > len(shown) else ""
        return f"{self.without} ({self.says}){rooms and ': '}{rooms}{more}; {fitting}, or {self.asked} without it"


@dataclass(frozen=True, slots=True)
class Unknown:
    """The zones, hosts, classes and amounts that a request names and a cell does not have.

    `there`: the first zones that its hosts are in, sorted, if a zone is unknown. `have`: the classes of its hosts and
    shared pools, if a class is unknown. `largest`: the most that any host has, free or not, of each class of which one
    place needs more.
    """

    zones: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    there: tuple[str, ...] = ()
    classes: frozenset[str] = frozenset()
    have: frozenset[str] = frozenset()
    largest: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Which zones, hosts, classes and amounts there are not, and which zones and classes; '' if there are all."""
        too_much = (f"no host has more than {amount_text(name, most)}" for name, most in self.largest.items())
        classes = map(self._class, sorted(self.classes))
        return "; ".join(filter(None, (self._zones(), self._hosts(), *classes, *too_much)))

    def _class(self, name: str) -> str:
        return f"no host has {those_there(name, self.have)}" if self.have else ""

    def _zones(self) -> str:
        if not self.zones:
            return ""
        names = " and ".join(map(repr, sorted(self.zones)))
        more = " and more" if len(self.there) > MAX_ZONES else ""
        there = f"the hosts are in {', '.join(self.there[:MAX_ZONES])}{more}" if self.there else "no host is in a zone"
        return f"unknown zone{'s' if len(self.zones) > 1 else ''} {names}: {there}"

    def _hosts(self) -> str:
        if not self.hosts:
            return ""
        names, more = sorted(self.hosts), len(self.hosts) - MAX_HOSTS
        listed = ", ".join(map(repr, names[:MAX_HOSTS])) + (f" and {more} more" if more > 0 else "")
        return f"unknown host{'s' if len(names) > 1 else ''} {listed}"


@dataclass(frozen=True, slots=True)
class ClosedHost:
    """A host that would take one place if it took claims at all. `reason`: `down`, `draining` and the like."""

    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a host, named by its reason; `detail` has the numbers."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Every check of one host. `reason` is the first that failed; None if the host fits. `kept` is as in `Miss`."""

    host: str
    reason: str | None
    checks: tuple[Check, ...]
    kept: KeptFor | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a decision: the counts over all hosts, the nearest misses, and the checks of named hosts.

    In a large fleet not every host's pools are searched for the counts alone: `unsearched` of the hosts that fit pass
    every rule, but their pools may fail. So `fits` is an upper bound, and the count of the reason `pools` a lower one.
    With `cut_short`, the search for changes that would help took too long, and some that there are may be missing.
    `ranked` has the best hosts that fit, best first; () if the request is refused. `unknown` names the zones and hosts
    of the request that do not exist. `closed` has the first hosts that would take one place if they took claims now.
    `exceeded` has the limits of the project's quota that the request exceeds, independently of the hosts; None while
    hosts may still restore claims that count. `spared` has the scarce classes that the request does not ask for, whose
    hosts come after others, with the number of these hosts; empty if it is refused.
    """

    hosts: int
    fits: int
    reasons: tuple[ReasonCount, ...]
    nearest: tuple[Miss, ...]
    checks: tuple[HostCheck, ...] = ()
    unsearched: int = 0
    exceeded: tuple[Exceeded, ...] | None = ()
    cut_short: bool = False
    ranked: tuple[RankedHost, ...] = ()
    unknown: Unknown = Unknown()
    closed: tuple[ClosedHost, ...] = ()
    spared: Mapping[str, int] = field(default_factory=dict)
    places: PlacesMiss | None = None
    """Why a request for several places is refused though hosts fit one of them; None if none does, or it is a gang."""
