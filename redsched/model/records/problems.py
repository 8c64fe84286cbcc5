"""What errors tell programs, the facts of each described once, and errors as problems (RFC 9457) and back."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from redsched import errors
from redsched.errors import (
    ClaimIdReused,
    ClaimState,
    Facts,
    Forbidden,
    InvalidRequest,
    NotConfirmed,
    NotFound,
    NoValidHost,
    PreconditionFailed,
    QuotaExceeded,
    RedschedError,
    TooHard,
    Unavailable,
)
from redsched.model.claims import ClaimStatus, one_line
from redsched.model.decision_note import ReasonCount
from redsched.model.declared import Exceeded
from redsched.model.record import adapter, json_of
from redsched.model.records.explanations import Miss, PlacesMiss
from redsched.model.records.fields import HIDDEN, if_any
from redsched.model.reserved_for import ReservedFor
from redsched.model.role import Role

F = TypeVar("F", bound=type[Facts])


def _of(*kinds: type[RedschedError]) -> Callable[[F], F]:
    """Return the decorator of the facts of these errors, and of those below them in the tree."""

    def register(facts: F) -> F:
        for kind in kinds:
            kind.facts_type = facts
        return facts

    return register


@_of(RedschedError)
@dataclass(frozen=True, kw_only=True)
class CommonFacts(Facts):
    """What every error may tell."""

    request_id: Annotated[str | None, if_any("The same as in the header `X-Request-Id`.")] = None
    claim_id: Annotated[str | None, if_any("The claim that it is about.")] = None


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid field."""

    field: str
    message: str


@_of(InvalidRequest)
@dataclass(frozen=True, kw_only=True)
class InvalidFacts(CommonFacts):
    """422: `errors` lists the invalid fields."""

    errors: Annotated[tuple[FieldError, ...] | None, if_any("The first 20.")] = None


@_of(ClaimIdReused)
@dataclass(frozen=True, kw_only=True)
class ClaimIdsFacts(CommonFacts):
    """The claims of the request."""

    claim_ids: Annotated[tuple[str, ...] | None, if_any("Ids of its claims: its own, or those made for it.")] = None


@_of(NoValidHost)
@dataclass(frozen=True, kw_only=True)
class NoValidHostFacts(CommonFacts):
    """409: no host fits; the reasons, and the nearest misses."""

    reasons: Annotated[tuple[ReasonCount, ...] | None, if_any("Why hosts were rejected, and how many for each.")] = None
    nearest: Annotated[tuple[Miss, ...] | None, if_any("The hosts that nearly fit, nearest first.")] = None
    cut_short: Annotated[
        bool | None, if_any("true: the search for changes took too long, so that some may be missing.")
    ] = None
    places: Annotated[PlacesMiss | None, if_any("Hosts fit one place, but not all: the rule, and how many fit.")] = None
    slot: Annotated[str | None, if_any("Of a resize: the slot that refuses its amount.")] = None
    asked: Annotated[int | None, if_any("Of a resize: that amount.")] = None
    rule: Annotated[
        str | None, if_any("Of a resize: what refuses it: `room`, `kept`, `min_unit`, `max_unit` or `step_size`.")
    ] = None
    value: Annotated[
        int | None, if_any("Of a resize: the value of the rule; of `room`, the most that it may have.")
    ] = None
    next: Annotated[
        tuple[int, ...] | None, if_any("Of a resize: the next smaller and larger amount that it can get, or has.")
    ] = None
    kept: Annotated[ReservedFor | None, if_any("Of a resize: what the host keeps for a request that waits.")] = None

    def named(self, text: str) -> str:
        """Return the error's text with the name of the request that the first host keeps something for, if it has it.

        Errors go to callers who may not know the request, so their texts do not name it.
        """
        kept = next(self._kept(), None)
        return text if kept is None else kept.named(text)

    def _kept(self) -> Iterator[ReservedFor]:
        """Yield what the host that it is about keeps, and the nearest ones."""
        yield from (kept for kept in (self.kept, *(one.kept for one in self.nearest or ())) if kept is not None)


@_of(ClaimState)
@dataclass(frozen=True, kw_only=True)
class ClaimStateFacts(CommonFacts):
    """409: the state of a claim, host or declared object that does not allow it."""

    state: Annotated[ClaimStatus | None, if_any("The state of the claim.")] = None
    claims: Annotated[Mapping[str, ClaimStatus] | None, if_any("The states of the request's claims, by id.")] = None
    unknown: Annotated[tuple[str, ...] | None, if_any("Ids of the request whose claims the store has lost.")] = None
    host: Annotated[str | None, if_any("The host that it is about.")] = None
    lease_ms: Annotated[int | None, if_any("How long the lease of the host still runs, ms.")] = None
    epoch: Annotated[str | None, if_any("The epoch that is too far ahead.")] = None
    cell: Annotated[str | None, if_any("The cell of the host.")] = None
    cells: Annotated[tuple[str, ...] | None, if_any("The cells that have a host of this name.")] = None
    members: Annotated[int | None, if_any("Number of members of the server group.")] = None
    uncounted: Annotated[
        tuple[str, ...] | None, if_any("Topologies by which not all members of the server group are counted.")
    ] = None


@_of(PreconditionFailed)
@dataclass(frozen=True, kw_only=True)
class PreconditionFacts(CommonFacts):
    """412: the object is not as the request requires."""

    tag: Annotated[str | None, if_any("The tag of the object, if it exists.")] = None


NOT_CONFIRMED = "not-confirmed"
"""The kind of an attempt whose host had not confirmed the claim when the wait ended."""
UNKNOWN = "unknown"
"""The kind of one whose claim is no longer known: the store has lost it."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A placement that did not become active, and why."""

    claim_id: str
    host: str
    at_ms: Annotated[int, Field(description="When it ended, or when a scheduler found that it had.")]
    kind: Annotated[
        str, Field(description="An end reason such as `failed` or `expired`; `not-confirmed`; `unknown`: it was lost.")
    ]
    reason: Annotated[str, Field(description="The cause as text; empty if none was given.")]

    def __str__(self) -> str:
        if self.kind == NOT_CONFIRMED:
            return f"not confirmed by {self.host} {self.reason}"
        if self.kind == UNKNOWN:
            return self.reason
        seen = one_line(self.reason)
        return f"{self.kind} on {self.host}" + (f" ({seen})" if seen else "")


@_of(NotConfirmed)
@dataclass(frozen=True, kw_only=True)
class NotConfirmedFacts(CommonFacts):
    """504: a selection with `until: active` was not confirmed in time; its failed attempts on each host."""

    claim_ids: Annotated[tuple[str, ...] | None, if_any("Its claims, which have all ended.")] = None
    failed_attempts: Annotated[
        tuple[FailedAttempt, ...] | None, if_any("Failed attempts by claim, in the order in which they were found.")
    ] = None


@_of(QuotaExceeded)
@dataclass(frozen=True, kw_only=True)
class QuotaFacts(CommonFacts):
    """403: the project's quota does not allow the request."""

    project: Annotated[str | None, if_any("The project.")] = None
    exceeded: Annotated[tuple[Exceeded, ...] | None, if_any("The limits that it exceeds.")] = None


@_of(Forbidden)
@dataclass(frozen=True, kw_only=True)
class ForbiddenFacts(CommonFacts):
    """403: the role, project or hosts of the caller do not allow it."""

    caller: Annotated[str | None, if_any("The id of the token.")] = None
    role: Annotated[Role | None, if_any("The role of the token.")] = None
    needs: Annotated[tuple[Role, ...] | None, if_any("The roles that may.")] = None
    claim_prefix: Annotated[str | None, if_any("What the claim ids of the caller must begin with.")] = None
    owner: Annotated[str | None, if_any("The owner of the claim.")] = None


@_of(TooHard)
@dataclass(frozen=True, kw_only=True)
class TooHardFacts(CommonFacts):
    """422: what made it hard."""

    doing: Annotated[str | None, if_any("What took too long.")] = None
    hosts: Annotated[int | None, if_any("Number of hosts.")] = None
    places: Annotated[int | None, if_any("Number of places of the request.")] = None
    parts: Annotated[int | None, if_any("Number of groups, cells, devices and conditions of one place.")] = None
    claims: Annotated[int | None, if_any("Of a plan: number of claims.")] = None
    spent_s: Annotated[float | None, if_any("Time spent, in seconds.")] = None


@_of(NotFound)
@dataclass(frozen=True, kw_only=True)
class NotFoundFacts(CommonFacts):
    """404: what does not exist."""

    hosts: Annotated[tuple[str, ...] | None, if_any("The hosts that have never reported.")] = None


@_of(Unavailable)
@dataclass(frozen=True, kw_only=True)
class UnavailableFacts(ClaimIdsFacts):
    """429 or 503: with what to try again, and which limit was reached."""

    limit: Annotated[str | None, if_any("What the caller has too much of: `requests`, `waiting` or `streams`.")] = None
    most: Annotated[int | None, if_any("The most that it may have of that.")] = None
    memory_bytes: Annotated[int | None, if_any("Memory that the server of the store uses.")] = None
    max_memory_bytes: Annotated[int | None, if_any("The most that it may use.")] = None
    idempotency_key: Annotated[str | None, HIDDEN] = None
    """Of a client: the key that was sent, with which the call may be repeated."""


_ERRORS: Mapping[str, type[RedschedError]] = {
    one.problem: one
    for one in vars(errors).values()
    if isinstance(one, type)
    and issubclass(one, RedschedError)
    and one is not Unavailable
    and one.problem != RedschedError.problem
}
"""The errors by the last part of their problem type."""


def members(error: RedschedError) -> dict[str, Any]:
    """Return the members of a problem, including the facts of the error."""
    return {
        **json_of(error.facts),
        "type": f"/problems/{error.problem}",
        "title": error.title,
        "status": error.status,
        "detail": error.public,
    }


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that was read: its text, its members, and its error; None for one that this release does not know."""

    detail: str
    members: Mapping[str, Any]
    kind: type[RedschedError] | None

    def error(self, kind: type[RedschedError], detail: str = "") -> RedschedError:
        """Return an error of this kind with its facts, without those that only a newer API knows."""
        read = adapter(kind.facts_type).validate_python
        try:
            facts = read(self.members, extra="ignore")
        except ValidationError as invalid:
            unread = {one["loc"][0] for one in invalid.errors(include_url=False)}
            facts = read({name: one for name, one in self.members.items() if name not in unread}, extra="ignore")
        return kind(detail or self.detail, facts)


def problem_of(content: bytes) -> Problem | None:
    """Return the problem in the body of a reply; None if it has none: another server answered, such as a proxy."""
    try:
        found = json.loads(content)
        return Problem(str(found["detail"]), found, _ERRORS.get(str(found["type"]).rpartition("/")[2]))
    except (ValueError, TypeError, KeyError):
        return None


def error_of(found: Mapping[str, Any]) -> RedschedError:
    """Return the error that the members of a problem describe."""
    kind = _ERRORS.get(str(found["type"]).rpartition("/")[2], RedschedError)
    return Problem(str(found["detail"]), found, kind).error(kind)
