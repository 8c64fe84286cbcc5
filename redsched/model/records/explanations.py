"""Explanations: which hosts fit a request, what rules the others out, and what would help."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from operator import not_
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, with_config
from typing_extensions import TypedDict

from redsched.model.claims import Amounts
from redsched.model.decision_note import RankedHost, ReasonCount
from redsched.model.declared import Exceeded
from redsched.model.gpus import amount_text
from redsched.model.nearest_names import those_there
from redsched.model.records.fields import HIDDEN, Names, Numbers, Texts
from redsched.model.reserved_for import ReservedFor

MAX_ZONES = 10
"""The most zones that a text lists."""
MAX_HOSTS = 5
"""The most unknown hosts, or domains with their room, that a text lists."""


@with_config(ConfigDict(extra="forbid"))
class ClaimInTheWay(TypedDict):
    """A claim whose end would help."""

    claim_id: str
    project: str


def _as_list(claims: Mapping[str, str]) -> list[ClaimInTheWay]:
    return [{"claim_id": claim_id, "project": project} for claim_id, project in claims.items()]


def _as_mapping(found: Any) -> Any:
    return {one["claim_id"]: one["project"] for one in found} if isinstance(found, list) else found


Projects = Annotated[Mapping[str, str], BeforeValidator(_as_mapping), PlainSerializer(_as_list)]
"""The projects of claims by claim id, which JSON shows as a list of objects."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A host that nearly fits.

    Misses sort by `distance`: the number of failed rules that are not about amounts, then the relative lack of amounts,
    summed over the classes.
    """

    host: str
    needs: Amounts
    free: Annotated[Amounts, Field(description="Below 0 if the host is overcommitted.")]
    changes: Annotated[
        tuple[str, ...], Field(description="Changes that together would make it fit; empty if none were found.")
    ] = ()
    distance: Annotated[tuple[int, float], HIDDEN] = field(default=(0, 0.0), compare=False)
    after: Annotated[str, Field(description="The claim whose end alone would make it fit.", exclude_if=not_)] = ""
    claims: Annotated[
        Projects,
        Field(
            description="Claims in the way: as few as possible whose end would make it fit. A tenant gets its own.",
            exclude_if=not_,
        ),
    ] = field(default_factory=dict)
    other_claims: Annotated[
        int,
        Field(description="Number of further claims in the way, which are not those of the caller.", exclude_if=not_),
    ] = 0
    both: Annotated[
        bool,
        Field(description="Whether the changes help only once the claims in the way have ended.", exclude_if=not_),
    ] = False
    kept: Annotated[
        ReservedFor | None,
        Field(description="What the host keeps of these classes for a request that waits.", exclude_if=not_),
    ] = None
    member: Annotated[str, Field(description="For a gang: the member that the place is for.", exclude_if=not_)] = ""
    places: Annotated[
        Texts,
        Field(
            description="By class: the pool that has what is `free`; without an entry it is the host itself.",
            exclude_if=not_,
        ),
    ] = field(default_factory=dict)
    total_free: Annotated[
        Numbers,
        Field(
            description="Of groups, cells and devices, by class: what is free in all, also in too small places.",
            exclude_if=not_,
        ),
    ] = field(default_factory=dict)
    capacity: Annotated[
        Numbers, Field(description="By class of these: what there is, free or not.", exclude_if=not_)
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlacesMiss:
    """Why hosts that fit one place have too few places for the `count` of a request."""

    asked: int
    fits: Annotated[int, Field(description="The largest `count` that fits.")]
    rule: Annotated[
        str, Field(description="The reason of the rule without which all would fit; `count` if no single one is.")
    ] = "count"
    says: Annotated[str, Field(description="What the rule allows.", exclude_if=not_)] = ""
    without: Annotated[
        str, Field(description="What to leave out of the request for all places to fit.", exclude_if=not_)
    ] = ""
    by: Annotated[
        str, Field(description="The topology of the rule: `host`, `zone` or `label:<key>`.", exclude_if=not_)
    ] = ""
    domains: Annotated[
        Mapping[str, int],
        Field(
            description="For how many places each zone or label value has room by amounts, the fewest first.",
            exclude_if=not_,
        ),
    ] = field(default_factory=dict)

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
    """The zones, hosts, classes and amounts that a request names and there are not."""

    unknown_zones: Annotated[Names, Field(description="Zones of the request that no host is in.")] = frozenset()
    unknown_hosts: Annotated[Names, Field(description="Hosts of the request that do not exist.")] = frozenset()
    zones: Annotated[tuple[str, ...], Field(description="The first zones that there are, if some are unknown.")] = ()
    unknown_classes: Annotated[Names, Field(description="Classes of the request that no host or shared pool has.")] = (
        frozenset()
    )
    classes: Annotated[Names, Field(description="The classes that there are, if some are unknown.")] = frozenset()
    largest: Annotated[
        Mapping[str, int],
        Field(description="The most that any host has of each class of which one place needs more."),
    ] = field(default_factory=dict)

    @property
    def unknown_text(self) -> str:
        """Which zones, hosts, classes and amounts there are not, and which zones and classes; '' if there are all."""
        too_much = (f"no host has more than {amount_text(name, most)}" for name, most in self.largest.items())
        classes = map(self._class, sorted(self.unknown_classes))
        return "; ".join(filter(None, (self._zones(), self._hosts(), *classes, *too_much)))

    def _class(self, name: str) -> str:
        return f"no host has {those_there(name, self.classes)}" if self.classes else ""

    def _zones(self) -> str:
        if not self.unknown_zones:
            return ""
        names = " and ".join(map(repr, sorted(self.unknown_zones)))
        more = " and more" if len(self.zones) > MAX_ZONES else ""
        there = f"the hosts are in {', '.join(self.zones[:MAX_ZONES])}{more}" if self.zones else "no host is in a zone"
        return f"unknown zone{'s' if len(self.unknown_zones) > 1 else ''} {names}: {there}"

    def _hosts(self) -> str:
        if not self.unknown_hosts:
            return ""
        names, more = sorted(self.unknown_hosts), len(self.unknown_hosts) - MAX_HOSTS
        listed = ", ".join(map(repr, names[:MAX_HOSTS])) + (f" and {more} more" if more > 0 else "")
        return f"unknown host{'s' if len(names) > 1 else ''} {listed}"


@dataclass(frozen=True, slots=True)
class ClosedHost:
    """A host that would take one place if it took claims."""

    host: str
    reason: Annotated[str, Field(description="Why it takes none: `down`, `not-attested`, `disabled` or `draining`.")]


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a host, named by its reason; `detail` has the numbers."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class HostCheck:
    """The results of all checks of a host. `reason` is the first check that failed; null if the host fits."""

    host: str
    reason: str | None
    checks: tuple[Check, ...]
    kept: Annotated[
        ReservedFor | None,
        Field(description="What the host keeps of these classes for a request that waits.", exclude_if=not_),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Unknown):
    """Why hosts fit or do not fit: counts over all hosts, the nearest misses, and the checks of named hosts.

    In a large fleet not every host's pools are searched for the counts alone, so the count of the reason `pools` is a
    lower bound.
    """

    hosts: int
    fits: Annotated[int, Field(description="Number of hosts that fit; an upper bound if some are `unsearched`.")]
    reasons: tuple[ReasonCount, ...]
    nearest: tuple[Miss, ...]
    checks: tuple[HostCheck, ...] = ()
    unsearched: Annotated[
        int, Field(description="Number of these hosts whose pools were not searched, so they may not fit.")
    ] = 0
    exceeded: Annotated[
        tuple[Exceeded, ...] | None,
        Field(description="Limits of the project's quota that the request exceeds; null while usage is being counted."),
    ] = ()
    cut_short: Annotated[
        bool, Field(description="Whether the search for changes took too long, so that some may be missing.")
    ] = False
    ranked: Annotated[
        tuple[RankedHost, ...],
        Field(description="The best hosts that fit one place, at most five, best first; empty if it is refused."),
    ] = ()
    closed: Annotated[
        tuple[ClosedHost, ...],
        Field(description="The first hosts that would take one place if they took claims now, at most three."),
    ] = ()
    spared: Annotated[
        Mapping[str, int],
        Field(description="Scarce classes that it does not ask for, whose hosts come last, and how many have each."),
    ] = field(default_factory=dict)
    places: Annotated[
        PlacesMiss | None,
        Field(
            description="Hosts fit one place, but not all: the rule, and how many fit. Absent of a gang.",
            exclude_if=not_,
        ),
    ] = None


def of_unknown(found: Unknown) -> dict[str, Any]:
    """Return what is unknown as the fields of an explanation."""
    return {one.name: getattr(found, one.name) for one in fields(Unknown)}
