"""Replies of the API as the plain data that the store's commands return, and what is sent to it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from redsched.model import AgentStamp, HostReport
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import (
    AttestAnswer,
    EndedPlacement,
    InboxEntry,
    JournaledClaim,
    ReportAnswer,
    ScriptResult,
)


def report_body(report: HostReport, stamp: AgentStamp) -> dict[str, Any]:
    """Return the body of a report. The path has the host's name."""
    found = to_jsonable_python(report)
    del found["name"]
    return {**found, "agent": stamp_body(stamp)}


def stamp_body(stamp: AgentStamp) -> dict[str, Any]:
    """Return the sender of a report."""
    told = {"version": stamp.version} if stamp.version else {}
    return {"journal": stamp.journal, "nonce": stamp.nonce, "number": stamp.number, **told}


def held_body(claim: JournaledClaim) -> dict[str, Any]:
    """Return a placement that the journal holds."""
    return {
        "id": claim.id,
        "token": claim.token,
        "placed": claim.placed,
        "root": claim.root,
        "state": claim.state.value,
        "record": dict(claim.record),
        "was_active": claim.was_active,
    }


def ended_body(one: EndedPlacement) -> dict[str, Any]:
    """Return a placement that the journal remembers as ended."""
    return {
        "id": one.id,
        "token": one.token,
        "placed": one.placed,
        "end_reason": one.end_reason,
        "was_active": one.was_active,
        "ended_ago_ms": one.ended_ago_ms,
    }


def outcome_from(reply: Mapping[str, Any]) -> ScriptResult:
    """Return the reply of a script."""
    return ScriptResult(Outcome(reply["outcome"]), reply["epoch"], reply["now_ms"], tuple(reply["details"]))


def reported_from(reply: Mapping[str, Any]) -> ReportAnswer:
    """Return the reply to a report."""
    return ReportAnswer(Outcome(reply["outcome"]), reply["epoch"], reply["now_ms"], reply["attested"], reply["version"])


def attested_from(reply: Mapping[str, Any]) -> AttestAnswer:
    """Return the reply to an attestation."""
    return AttestAnswer(Outcome(reply["outcome"]), reply["epoch"], reply["now_ms"], tuple(reply["drop"]))


def entries_from(reply: Sequence[Mapping[str, Any]]) -> list[InboxEntry]:
    """Return the notifications of a host."""
    return [
        InboxEntry(one["entry_id"], one["number"], one["epoch"], one["op"], one["claim_id"], one["token"])
        for one in reply
    ]
