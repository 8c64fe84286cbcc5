"""Responses to agents without access to the store: the replies of the store's scripts."""

from typing import Annotated

from pydantic import Field

from redsched.schema.answer import Answer, From
from redsched.schema.responses.hosts import InboxEntryAnswer
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import AttestAnswer, Inboxes, ReportAnswer, ScriptResult


class AgentAnswer(Answer):
    """The cells of the fleet."""

    cells: list[str]


class OutcomeAnswer(Answer, shows=ScriptResult):
    """The outcome of a call, and the store's epoch and time (Unix, ms). `details` depend on call and outcome."""

    outcome: Outcome
    epoch: str
    now_ms: int
    details: Annotated[list[str], From(lambda result: list(result.facts))]


class ReportedAnswer(Answer, shows=ReportAnswer):
    """The outcome of a report. Unless `attested`, the host takes no claims until it attests."""

    outcome: Outcome
    epoch: str
    now_ms: int
    attested: bool
    version: int


class AttestedAnswer(Answer, shows=AttestAnswer):
    """The outcome of an attestation. `drop`: placements whose work the host must stop."""

    outcome: Outcome
    epoch: str
    now_ms: int
    drop: list[str]


class HeartbeatsAnswer(Answer):
    """The outcomes of heartbeats, by host."""

    hosts: dict[str, OutcomeAnswer]


class InboxesAnswer(Answer, shows=Inboxes):
    """The notifications of hosts that have any, by host."""

    epoch: Annotated[str, Field(description="The cell's epoch; empty if the call did not wait.")]
    reset: Annotated[bool, Field(description="Whether changes may have been missed: look at everything.")]
    entries: dict[str, list[InboxEntryAnswer]]


class ClaimIdsAnswer(Answer):
    """The ids of the claims on hosts, by host."""

    ids: dict[str, list[str]]


class DevicesAnswer(Answer):
    """The devices of a host, by the names of their pools."""

    devices: dict[str, str]


class HeldClaimsAnswer(Answer):
    """Claims with a placement on one of the hosts, by id, each with its fields as the store has them."""

    claims: dict[str, dict[str, str]]


class TextsAnswer(Answer):
    """Texts, by name."""

    texts: dict[str, str]


class TextNamesAnswer(Answer):
    """The names of texts that are no longer kept."""

    missing: list[str]
