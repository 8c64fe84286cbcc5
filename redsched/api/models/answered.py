"""What goes out: the shape of every answer, for the OpenAPI. `redsched.api.render` builds them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from redsched.api.models.words import Answer
from redsched.model import ClaimStatus, HostStatus, Why

Amounts = dict[str, int]


class Problem(BaseModel):
    """An RFC 9457 problem. Facts for programs stand beside these members."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(pattern="^/problems/[a-z-]+$")]
    title: str
    status: int
    detail: Annotated[str, Field(description="What was wrong, the value seen, and what to do.")]


class FieldError(BaseModel):
    """One field that is not valid."""

    field: str
    message: str


class ReasonCount(Answer):
    """How many hosts were left out for one reason."""

    reason: str
    hosts: int


class Miss(Answer):
    """A host that nearly fitted."""

    host: str
    needs: Amounts
    free: Amounts


class InvalidProblem(Problem):
    """422: `errors` says which fields."""

    errors: list[FieldError] | None = None


class NoValidHostProblem(Problem):
    """409 of a selection: why no host fits."""

    reasons: list[ReasonCount] | None = None
    nearest: list[Miss] | None = None


class Alternate(Answer):
    """A further host that fitted at that moment. Not claimed."""

    host: str


class SelectionAnswer(Answer):
    """One place: its host and claim. A dry run has no claim."""

    claim_id: str | None
    state: ClaimStatus | None
    cell: str
    host: str
    slots: Amounts
    token: str | None
    expires_at_ms: int | None
    alternates: list[Alternate]


class SelectionsAnswer(Answer):
    """All places, in the order of `claim_ids`."""

    selections: list[SelectionAnswer]


class CheckAnswer(Answer):
    """One check of one host."""

    name: str
    ok: bool
    detail: str


class HostCheckAnswer(Answer):
    """What each check said about a host; `reason` is the first that failed."""

    host: str
    reason: str | None
    checks: list[CheckAnswer]


class ExplanationAnswer(Answer):
    """Why hosts fit or do not."""

    hosts: int
    fits: int
    reasons: list[ReasonCount]
    nearest: list[Miss]
    checks: list[HostCheckAnswer]


class ClaimAnswer(Answer):
    """A claim as the store holds it."""

    claim_id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    slots: Amounts
    project: str
    consumer: str
    why: Why | None
    claimed_at_ms: int | None
    expires_at_ms: int | None


class ClaimsAnswer(Answer):
    """A page of claims; `next` is the `after` of the next page, null on the last."""

    claims: list[ClaimAnswer]
    next: str | None


class EndingAnswer(Answer):
    """The claim ends as soon as its host says that the work is gone."""

    claim_id: str
    state: Literal["ending"]


class SlotAnswer(Answer):
    """One slot of a host. free = capacity - claimed - external; below 0 where the host is over-committed."""

    total: int
    reserved: int
    allocation_ratio: float
    min_unit: int
    max_unit: int
    step_size: int
    capacity: int
    claimed: int
    external: int
    free: int


class HostAnswer(Answer):
    """A host as the scheduler sees it."""

    name: str
    cell: str
    zone: str
    status: HostStatus
    alive: bool
    attested: bool
    version: int
    lease_s: int
    slots: dict[str, SlotAnswer]
    traits: list[str]
    labels: dict[str, str]
    metrics: dict[str, float]
    claims: int


class HostsAnswer(Answer):
    """A page of hosts; `next` is the `after` of the next page, null on the last."""

    hosts: list[HostAnswer]
    next: str | None


class ReportAnswer(Answer):
    """What became of a report. `attested` false: send the claims and this `epoch`. `drop`: stop these."""

    outcome: Literal["OK", "SAME"]
    epoch: str
    attested: bool
    version: int
    drop: list[str]


class HeartbeatAnswer(Answer):
    """OK, or ATTEST: the store is in a new epoch, send a report that attests to it."""

    outcome: Literal["OK", "ATTEST"]


class InboxEntryAnswer(Answer):
    """One hint for a host's agent."""

    entry_id: str
    number: int
    epoch: str
    op: Literal["claim", "end"]
    claim_id: str
    token: str


class InboxAnswer(Answer):
    """What waits for the host's agent."""

    entries: list[InboxEntryAnswer]


class ChangeAnswer(Answer):
    """The data of a `change` event: new absolute values of what changed."""

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: dict[str, Any]


class HealthAnswer(Answer):
    """The process answers."""

    status: Literal["ok"]


class ReadyAnswer(Answer):
    """Every worker's cache has caught up."""

    status: Literal["ready"]
    detail: str
    hosts: int
    workers: int
