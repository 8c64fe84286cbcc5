"""What callers ask for: filters of claims and events, and what sums are by. Loads no client of the store."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from redsched.errors import InvalidRequest
from redsched.model import Claim, ClaimStatus, EndReason, ListedState, OneOf, accepts, values_of
from redsched.model.validation import parse_int

KINDS = frozenset(EndReason) | {
    *("claimed", "local", "active", "resizing", "resized", "resize-failed", "ending", "restored"),
    *("up", "down", "attest", "status", "lost", "membership", "declared", "removed", "repaired", "missing"),
    *("fencing", "fence-failed", "over-capacity", "rule-broken"),
}
"""The kinds of events in the log."""
RESET = "reset"
"""The kind of an event that is in no log: a reader of the log gets it where it may have missed events."""


ME = "@me"
"""In place of an owner: the caller of the REST API, which knows who that is. No owner has this name."""


@dataclass(frozen=True, slots=True)
class ClaimFilter:
    """Selects the claims that match every given field by one of its values. The owner '' is that of unowned claims.

    With `host`, selects all claims that have a placement there and shows each at that placement; without, shows each at
    its main placement. `claimed_before_ms` and `claimed_after_ms` (Unix ms, 0 for none) select by when they were
    claimed; one that was never on a host was not. Raises InvalidRequest for a state that cannot be listed, and for
    `shelved` with a host or zone.
    """

    host: OneOf = None
    project: OneOf = None
    consumer: OneOf = None
    state: OneOf = None
    zone: OneOf = None
    cell: OneOf = None
    claimed_before_ms: int = 0
    claimed_after_ms: int = 0
    owner: OneOf = None

    def __post_init__(self) -> None:
        states = values_of(self.state)
        if ClaimStatus.ENDED in states:
            raise InvalidRequest("ended claims are not listed: read one by its id, or list those with state shelved")
        if unknown := [one for one in states if one not in set(ListedState)]:
            raise InvalidRequest(f"unknown state {unknown[0][:80]!r}: use {', '.join(ListedState)}")
        if self.includes_shelved and (self.host or self.zone):
            raise InvalidRequest("a shelved claim is on no host: leave out host and zone, or state shelved")

    def require_any(self) -> None:
        """Raise InvalidRequest if the filter is empty: it would match every claim."""
        if not any(self.given.values()):
            raise InvalidRequest(
                f"a filter is required, or every claim would be selected: give at least one of {', '.join(self.given)}"
            )

    @property
    def given(self) -> dict[str, Any]:
        """The values by field: the filters that lists of claims take."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def matches(self, claim: Claim) -> bool:
        """Return whether the project, consumer, owner, state and age of a claim match."""
        state = ListedState.SHELVED if claim.is_shelved else claim.state
        return (
            accepts(self.project, claim.project)
            and accepts(self.consumer, claim.consumer)
            and accepts(self.owner, claim.owner)
            and accepts(self.state, state)
            and self._is_of_age(claim)
        )

    def _is_of_age(self, claim: Claim) -> bool:
        at_ms = claim.claimed_at_ms
        if at_ms is None:
            return not self.claimed_before_ms and not self.claimed_after_ms
        return self.claimed_after_ms <= at_ms and not 0 < self.claimed_before_ms <= at_ms

    @property
    def includes_shelved(self) -> bool:
        """Whether the filter includes shelved claims; without a state it does not."""
        return ListedState.SHELVED in values_of(self.state)

    @property
    def includes_unplaced(self) -> bool:
        """Whether the filter may match a pending claim without a placement."""
        return not self.host and not self.zone and accepts(self.state, ClaimStatus.PENDING)

    @property
    def includes_placed(self) -> bool:
        """Whether the filter may match a claim on a host."""
        return set(values_of(self.state)) != {ListedState.SHELVED}


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects the events that match every given field. Raises InvalidRequest for an unknown kind.

    `since_ms` and `before_ms` (Unix ms by the store's clock, 0 for none) select by when they happened: at `since_ms` or
    later, and before `before_ms`. With `of_projects`, only events of claims of these projects: '' is that of claims
    without a project, which `project` cannot select.
    """

    claim: OneOf = None
    project: OneOf = None
    host: OneOf = None
    kind: OneOf = None
    actor: OneOf = None
    request_id: OneOf = None
    of_projects: frozenset[str] | None = None
    since_ms: int = 0
    before_ms: int = 0

    def __post_init__(self) -> None:
        if unknown := [kind for kind in values_of(self.kind) if kind not in KINDS]:
            raise InvalidRequest(f"unknown kind {unknown[0][:80]!r}: events are {', '.join(sorted(KINDS))}")

    def matches(self, event: Mapping[str, str]) -> bool:
        """Return whether an event matches, by its fields: those of the log, such as `at_ms`."""
        if (self.since_ms or self.before_ms) and not self._is_in_time(parse_int(event.get("at_ms", ""), 0)):
            return False
        if self.of_projects is not None and not ("claim" in event and event.get("project", "") in self.of_projects):
            return False
        return all(accepts(getattr(self, name), event.get(name)) for name in _MATCHED)

    @property
    def given(self) -> dict[str, Any]:
        """The values by field: the filters that lists of events take."""
        return {name: getattr(self, name) for name in (*_MATCHED, "since_ms", "before_ms")}

    def _is_in_time(self, at_ms: int) -> bool:
        return self.since_ms <= at_ms and not 0 < self.before_ms <= at_ms


_MATCHED = ("claim", "project", "host", "kind", "actor", "request_id")
ALL = EventFilter()


class UsageBy(StrEnum):
    """Dimensions by which usage is summed."""

    CLASS = "class"
    ZONE = "zone"
    PROJECT = "project"


def usage_by(text: str) -> tuple[UsageBy, ...]:
    """Parse a list such as `class,zone,project`, without duplicates, in its order. Raises InvalidRequest."""
    names = dict.fromkeys(text.split(","))
    unknown = [name for name in names if name not in set(UsageBy)]
    if unknown:
        known = ", ".join(UsageBy)
        raise InvalidRequest(
            f"by {unknown[0][:80]!r} is not a key to sum by: use one or more of {known}, separated by commas"
        )
    return tuple(UsageBy(name) for name in names)
