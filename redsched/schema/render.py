"""Render the scheduler's dataclasses as JSON, one function per shape. `redsched.schema.responses` has the types.

It uses dicts and pydantic's serialiser, no models: a response is built once, within microseconds for the hot route.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from redsched.model import Claim, ClaimStatus, Placement, Reason
from redsched.scheduler import (
    AuditReport,
    BulkResult,
    EventView,
    Explanation,
    Page,
    Selection,
    UsageRow,
    miss_facts,
)
from redsched.schema.problem import members


def selections(found: Sequence[Selection]) -> dict[str, Any]:
    """Return the selections of one request."""
    return {"selections": [_selection(one) for one in found]}


def _selection(one: Selection) -> dict[str, Any]:
    shown = {
        "claim_id": one.claim_id,
        "state": one.state,
        "cell": one.cell,
        "host": one.host,
        "slots": one.slots,
        "token": one.token,
        "expires_at_ms": one.expires_at_ms,
        "alternates": [{"host": host} for host in one.alternates],
    }
    return {**shown, "member": one.member} if one.member else shown


def explanation(found: Explanation) -> dict[str, Any]:
    """Return the explanation of why hosts fit or do not."""
    return {
        "hosts": found.hosts,
        "fits": found.fits,
        "unsearched": found.unsearched,
        "reasons": [{"reason": one.reason, "hosts": one.hosts} for one in found.reasons],
        "nearest": [miss_facts(one) for one in found.nearest],
        "exceeded": None if found.exceeded is None else [asdict(one) for one in found.exceeded],
        "checks": [
            {
                "host": host.host,
                "reason": host.reason,
                "checks": [{"name": one.name, "ok": one.ok, "detail": one.detail} for one in host.checks],
            }
            for host in found.checks
        ],
    }


def claim(one: Claim) -> dict[str, Any]:
    """Return a claim as the store has it."""
    return {
        "claim_id": one.id,
        "cell": one.cell,
        "host": one.host,
        "state": one.state,
        "token": one.token,
        "slots": one.amounts,
        "project": one.project,
        "consumer": one.consumer,
        "server_group": None if one.state is ClaimStatus.ENDED else one.group,
        "end_reason": one.end_reason,
        "claimed_at_ms": one.claimed_at_ms,
        "expires_at_ms": one.expires_at_ms,
        "closed": one.closed,
        "attempts": one.attempts,
        "max_attempts": one.max_attempts,
        "restarts": one.restarts,
        "next_attempt_at_ms": one.next_attempt_at_ms,
        "alternates": None if one.state is ClaimStatus.ENDED else [{"host": host} for host in one.alternates],
        "placements": [_placement(placement) for placement in one.placements],
        "resizing_to": one.resizing_to,
        "digest": one.digest,
        "counted": one.counted,
        "on_exit": one.on_exit,
        "work_ended_at_ms": one.work_ended_at_ms,
        "reason": None if one.reason is None else _reason(one.reason),
    }


def _reason(one: Reason) -> dict[str, Any]:
    return {"at_ms": one.at_ms, "host": one.host, "token": one.token, "text": one.text}


def _placement(one: Placement) -> dict[str, Any]:
    return {
        "placed": one.placed,
        "token": one.token,
        "root": one.root,
        "host": one.host,
        "state": one.state,
        "slots": one.amounts,
        "end_reason": one.end_reason,
        "expires_at_ms": one.expires_at_ms,
        "move_deadline_ms": one.move_deadline_ms,
    }


def bulk(page: Page[BulkResult], watch: str | None = None) -> dict[str, Any]:
    """Return the result of a bulk call for each claim. `watch`: the path that lists the claims that are ending."""
    return {"results": [_bulk(one) for one in page.items], "next": page.next, "watch": watch}


def _bulk(one: BulkResult) -> dict[str, Any]:
    return {
        "claim_id": one.claim.id,
        "host": one.claim.host,
        "state": one.claim.state,
        "outcome": one.outcome,
        "problem": members(one.error) if one.error else None,
    }


def usage(one: UsageRow) -> dict[str, Any]:
    """Return the usage of the claims of one group."""
    return {**one.of, "used": dict(sorted(one.used.items()))}


def audit(found: AuditReport) -> dict[str, Any]:
    """Return the findings and repairs of an audit."""
    return {
        "hosts": found.hosts,
        "claims": found.claims,
        "problems": [
            {
                "invariant": one.invariant,
                "cell": one.cell,
                "what": one.what,
                "thing": one.thing,
                "found": one.found,
                "should": one.should,
                "detail": one.detail,
                "repaired": one.repaired,
                "advice": one.advice,
            }
            for one in found.problems
        ],
    }


def event(one: EventView) -> dict[str, Any]:
    """Return an event of the log."""
    head = {"id": one.id, "cell": one.cell, "at_ms": one.at_ms, "seq": one.seq, "kind": one.kind}
    return {**head, **one.facts, **({"slots": one.slots} if one.slots else {})}
