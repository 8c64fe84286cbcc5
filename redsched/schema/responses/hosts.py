"""Responses about hosts, their reports, heartbeats and inboxes."""

from typing import Annotated, Literal

from pydantic import Field

from redsched.scheduler import InboxEntry, ReportResult
from redsched.schema.answer import Answer, From


class AcceptedAnswer(Answer):
    """Work in progress."""

    watch: Annotated[str, Field(description="Path that shows the progress; same as `Location`.")]


class ReportAnswer(Answer, shows=ReportResult):
    """The result of a report. `attested` false: send `claims` and this `epoch`. `drop`: placements to stop.

    `warnings`: of which slots nothing can ever be claimed, and why.
    """

    outcome: Literal["OK", "ALREADY_DONE"]
    epoch: str
    attested: bool
    version: int
    drop: list[str]
    warnings: Annotated[list[str], Field(default_factory=list)]


class HeartbeatAnswer(Answer):
    """OK, or NOT_ATTESTED: the store is in a new epoch; send a report that attests to it."""

    outcome: Literal["OK", "NOT_ATTESTED"]


class InboxEntryAnswer(Answer, shows=InboxEntry):
    """A notification for a host's agent: a claim to start, resize or end."""

    entry_id: str
    number: int
    epoch: str
    op: Literal["claim", "resize", "end"]
    claim_id: str
    token: str
    actor: Annotated[str, From("origin.actor"), Field(description="Who caused it; empty if not known.")]
    request_id: Annotated[str, From("origin.request_id"), Field(description="The request that caused it, likewise.")]


class InboxAnswer(Answer):
    """The pending notifications for the host's agent."""

    entries: list[InboxEntryAnswer]
