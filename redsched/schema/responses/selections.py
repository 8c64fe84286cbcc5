"""Responses about selections and explanations."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from redsched.model import Amounts, ClaimStatus, Exceeded, ReasonCount
from redsched.scheduler import Check, ClosedHost, Explanation, HostCheck, RankedHost, Selection, Selections
from redsched.schema.answer import Answer, From
from redsched.schema.responses.problems import KeptForAnswer, Miss, PlacesMissAnswer


class Alternate(Answer):
    """Another host that fitted at the time of the selection. It is not claimed."""

    host: Annotated[str, From(str)]


class SelectionAnswer(Answer, shows=Selection):
    """A place: its host and its claim. A dry run has no claim."""

    claim_id: str | None
    state: ClaimStatus | None
    cell: str
    host: str
    slots: Amounts
    token: str | None
    expires_at_ms: int | None
    alternates: list[Alternate]
    member: Annotated[str, Field(description="For a gang: the member that the place is for.")] = ""


class SelectionsAnswer(Answer, shows=Selections):
    """All places, in the order of `claim_ids`."""

    selections: list[SelectionAnswer]


class CheckAnswer(Answer, shows=Check):
    """A check of a host."""

    name: str
    ok: bool
    detail: str


class HostCheckAnswer(Answer, shows=HostCheck):
    """The results of all checks of a host. `reason` is the first check that failed."""

    host: str
    reason: str | None
    checks: list[CheckAnswer]
    kept: Annotated[
        KeptForAnswer | None, Field(description="What the host keeps of these classes for a request that waits.")
    ] = None


class RankedHostAnswer(Answer, shows=RankedHost):
    """A host that fits, with its score: the sum of what its weighers add."""

    host: str
    score: Annotated[float, Field(description="Higher is better.")]
    weighers: Annotated[
        Mapping[str, float], Field(description="What each weigher adds to the score: its value times its multiplier.")
    ]
    member: Annotated[str, Field(description="For a gang: the member that the place is for.")] = ""


class ClosedHostAnswer(Answer, shows=ClosedHost):
    """A host that would take one place if it took claims."""

    host: str
    reason: Annotated[str, Field(description="Why it takes none: `down`, `not-attested`, `disabled` or `draining`.")]


class ExplanationAnswer(Answer, shows=Explanation):
    """Why hosts fit or do not fit."""

    hosts: int
    fits: Annotated[int, Field(description="Number of hosts that fit; an upper bound if some are `unsearched`.")]
    unsearched: Annotated[
        int, Field(description="Number of these hosts whose pools were not searched, so they may not fit.")
    ]
    ranked: Annotated[
        list[RankedHostAnswer],
        Field(description="The best hosts that fit one place, at most five, best first; empty if it is refused."),
    ]
    spared: Annotated[
        Mapping[str, int],
        Field(description="Scarce classes that it does not ask for, whose hosts come last, and how many have each."),
    ]
    unknown_zones: Annotated[
        list[str], From("unknown.zones"), Field(description="Zones of the request that no host is in.")
    ]
    unknown_hosts: Annotated[
        list[str], From("unknown.hosts"), Field(description="Hosts of the request that do not exist.")
    ]
    unknown_classes: Annotated[
        list[str], From("unknown.classes"), Field(description="Classes of the request that no host or shared pool has.")
    ]
    classes: Annotated[
        list[str], From("unknown.have"), Field(description="The classes that there are, if some are unknown.")
    ]
    zones: Annotated[
        list[str],
        From("unknown.there"),
        Field(description="The first zones that there are, if some are unknown."),
    ]
    largest: Annotated[
        Mapping[str, int],
        From("unknown.largest"),
        Field(description="The most that any host has of each class of which one place needs more."),
    ]
    reasons: list[ReasonCount]
    nearest: list[Miss]
    closed: Annotated[
        list[ClosedHostAnswer],
        Field(description="The first hosts that would take one place if they took claims now, at most three."),
    ]
    exceeded: Annotated[
        list[Exceeded] | None,
        Field(description="Limits of the project's quota that the request exceeds; null while usage is being counted."),
    ]
    checks: list[HostCheckAnswer]
    places: Annotated[
        PlacesMissAnswer | None, Field(description="Hosts fit one place, but not all: the rule, and how many fit.")
    ] = None
    cut_short: Annotated[
        bool, Field(description="Whether the search for changes took too long, so that some may be missing.")
    ]
