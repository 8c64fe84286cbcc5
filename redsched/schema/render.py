"""The scheduler's dataclasses as JSON, one function a shape. `redsched.schema.responses` says the same as types.

Dicts and pydantic's serialiser, no models: an answer is built once, and the everyday call is answered in microseconds.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from redsched.model import Claim, ClaimStatus, Placement, Reason
from redsched.scheduler import (
    AggregateView,
    AuditReport,
    BulkResult,
    Change,
    EventView,
    Explanation,
    HostView,
    InboxEntry,
    Page,
    QuotaView,
    ReportResult,
    Selection,
    ServerGroupView,
    SharedPoolView,
    SlotView,
    UsageRow,
    miss_facts,
)
from redsched.schema.problem import members


def selections(found: Sequence[Selection]) -> dict[str, Any]:
    """The places of one request."""
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
    """Why hosts fit or do not."""
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
    """A claim as the store holds it."""
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
    """What has become of each of many claims. `watch`: the path that lists those that are ending."""
    return {"results": [_bulk(one) for one in page.items], "next": page.next, "watch": watch}


def _bulk(one: BulkResult) -> dict[str, Any]:
    return {
        "claim_id": one.claim.id,
        "host": one.claim.host,
        "state": one.claim.state,
        "outcome": one.outcome,
        "problem": members(one.error) if one.error else None,
    }


def host(one: HostView) -> dict[str, Any]:
    """A host as the scheduler sees it."""
    return {
        "name": one.name,
        "cell": one.cell,
        "zone": one.zone,
        "status": one.status,
        "alive": one.alive,
        "attested": one.attested,
        "written_off": one.written_off,
        "version": one.version,
        "lease_s": one.lease_s,
        "slots": {name: _slot(slot) for name, slot in sorted(one.slots.items())},
        "traits": sorted(one.traits),
        "labels": dict(sorted(one.labels.items())),
        "metrics": dict(sorted(one.metrics.items())),
        "claims": one.claims,
        "pools": {name: {"parent": pool.parent, "traits": sorted(pool.traits)} for name, pool in one.pools.items()},
        "aggregates": sorted(one.aggregates),
        "draining": one.draining,
        "drain_deadline_ms": one.drain_deadline_ms,
        "drain_then": one.drain_then,
        "unmovable": [{"claim_id": claim_id, "reason": reason} for claim_id, reason in sorted(one.unmovable.items())],
        "failed_moves": [{"claim_id": claim_id, **asdict(move)} for claim_id, move in sorted(one.failed_moves.items())],
    }


def drain(one: HostView) -> dict[str, Any]:
    """How far a host's drain or evacuation is."""
    shown = host(one)
    names = ("status", "draining", "claims", "drain_deadline_ms", "drain_then", "unmovable", "failed_moves")
    return {"host": one.name, "state": one.drain_state, **{name: shown[name] for name in names}}


def aggregate(one: AggregateView) -> dict[str, Any]:
    """An aggregate with its hosts."""
    return {"name": one.name, "metadata": dict(sorted(one.metadata.items())), "hosts": one.hosts}


def server_group(one: ServerGroupView) -> dict[str, Any]:
    """A server group, and how many members it has where."""
    group = one.group
    return {
        "name": group.name,
        "policy": group.policy,
        "by": group.by,
        "max_per_host": group.max_per_host,
        "count_by": group.count_by,
        "members": one.members,
        "counts": {by: dict(sorted(counted.items())) for by, counted in one.counts.items()},
    }


def shared_pool(one: SharedPoolView) -> dict[str, Any]:
    """A shared pool with what is claimed and free of each class."""
    return {
        "name": one.name,
        "cell": one.cell,
        "slots": {name: _slot(slot) for name, slot in one.slots.items()},
        "traits": sorted(one.traits),
        "aggregates": sorted(one.aggregates),
    }


def _slot(one: SlotView) -> dict[str, Any]:
    return {
        "total": one.total,
        "reserved": one.reserved,
        "allocation_ratio": one.ratio,
        "min_unit": one.min,
        "max_unit": one.max,
        "step_size": one.step,
        "capacity": one.capacity,
        "claimed": one.claimed,
        "external": one.external,
        "free": one.free,
    }


def quota(one: QuotaView) -> dict[str, Any]:
    """A project's quota, and what is used; of what is limited also that it is nothing."""
    used = {**dict.fromkeys(one.limits, 0), **one.used}
    return {"project": one.project, "limits": dict(sorted(one.limits.items())), "used": dict(sorted(used.items()))}


def usage(one: UsageRow) -> dict[str, Any]:
    """What claims use that have some values in common."""
    return {**one.of, "used": dict(sorted(one.used.items()))}


def report(found: ReportResult) -> dict[str, Any]:
    """What became of a report."""
    return {
        "outcome": found.outcome,
        "epoch": found.epoch,
        "attested": found.attested,
        "version": found.version,
        "drop": list(found.drop),
    }


def inbox(entries: Sequence[InboxEntry]) -> dict[str, Any]:
    """What waits for a host's agent."""
    return {"entries": [_inbox_entry(one) for one in entries]}


def _inbox_entry(one: InboxEntry) -> dict[str, Any]:
    return {
        "entry_id": one.entry_id,
        "number": one.number,
        "epoch": one.epoch,
        "op": one.op,
        "claim_id": one.claim_id,
        "token": one.token,
    }


def change(one: Change) -> dict[str, Any]:
    """One change of a cell."""
    return {
        "cell": one.cell,
        "seq": one.seq,
        "kind": one.kind,
        "name": one.name,
        "version": one.version,
        "op": one.op,
        "fields": one.fields,
    }


def audit(found: AuditReport) -> dict[str, Any]:
    """What an audit found, and mended."""
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
                "mended": one.mended,
                "advice": one.advice,
            }
            for one in found.problems
        ],
    }


def event(one: EventView) -> dict[str, Any]:
    """An event of the log."""
    head = {"id": one.id, "cell": one.cell, "at_ms": one.at_ms, "seq": one.seq, "kind": one.kind}
    return {**head, **one.facts, **({"slots": one.slots} if one.slots else {})}
