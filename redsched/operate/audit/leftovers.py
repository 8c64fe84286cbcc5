"""Audit leftovers: claims, keys, and entries in `deadlines` and `reconcile` that should be gone. Invariant 5.

They are read one after the other, so a finding is a suspicion until the next pass confirms it.
"""

from collections.abc import AsyncIterator, Iterator

from redsched.model import HELD, LEASED, ClaimStatus, EndReason
from redsched.model.records.audit import Problem, RepairKind
from redsched.model.validation import parse_int
from redsched.operate.audit.snapshot import AuditSnapshot, members_of
from redsched.pacing import paced

RUNS = "its work may run: --repair ends it for good, and its host, should it come back, stops the work"
HOST_KEYS = ("claims", "attributes", "inbox")


async def leftover_problems(cell: str, seen: AuditSnapshot) -> list[Problem]:
    """Return a problem for each leftover."""
    few = (*_of_gone_hosts(cell, seen), *_gangs(cell, seen))
    many = [
        one
        for part in (_unlisted_placements, _due, _missing_reconcile_entries, _remembered)
        async for one in part(cell, seen)
    ]
    return [*few, *many]


async def _unlisted_placements(cell: str, seen: AuditSnapshot) -> AsyncIterator[Problem]:
    """Yield placements that are missing from the set of their host's claims."""
    for host, unlisted in sorted(seen.unlisted.items()):
        async for claim_id, state in paced(unlisted.items()):
            if host in seen.present:
                should = "among the claims of its host"
                yield Problem(
                    5, cell, claim_id, "claim", f"{state} on {host}, not counted", should, RepairKind.HOST, host
                )
            else:
                advice = "" if state == ClaimStatus.CLAIMED else RUNS
                says = f"{state} on {host or 'no host'}"
                yield Problem(5, cell, claim_id, "claim", says, "on a host", RepairKind.GONE_HOST, host, advice)


def _of_gone_hosts(cell: str, seen: AuditSnapshot) -> Iterator[Problem]:
    for kind in HOST_KEYS:
        for host in sorted(set(seen.marks.keys.get(kind, ())).difference(seen.present)):
            advice = RUNS if kind == "claims" and host in seen.accepted_on else ""
            yield Problem(
                5, cell, f"{kind}:{host}", "key", "there", "gone with its host", RepairKind.GONE_HOST, host, advice
            )
    for host in sorted(set(seen.marks.listed).difference(seen.present)):
        yield Problem(5, cell, f"hosts {host}", "entry", "there", "gone with its host", RepairKind.GONE_HOST, host)
    for host in sorted(seen.present.difference(seen.marks.listed)):
        yield Problem(5, cell, f"hosts {host}", "entry", "none", "that of a host", RepairKind.HOST, host)


async def _due(cell: str, seen: AuditSnapshot) -> AsyncIterator[Problem]:
    async for claim_id in paced(seen.marks.deadlines):
        state = seen.states.get(claim_id, "unknown")
        if state not in LEASED and claim_id not in seen.leased:
            yield Problem(5, cell, claim_id, "deadline", f"of a claim {state}", "none", RepairKind.DUE, claim_id)
    async for claim_id in paced(seen.marks.to_reconcile):
        if claim_id not in seen.states:
            yield Problem(5, cell, f"reconcile {claim_id}", "entry", "of no claim", "none", RepairKind.DUE, claim_id)


async def _missing_reconcile_entries(cell: str, seen: AuditSnapshot) -> AsyncIterator[Problem]:
    """Yield claims without a `reconcile` entry although an unwanted placement is left, or a new placement is due."""
    async for claim_id in paced(seen.unfinished):
        if claim_id not in seen.marks.to_reconcile:
            yield Problem(
                5, cell, f"reconcile {claim_id}", "entry", "none", "to be reconciled", RepairKind.DUE, claim_id
            )


def _gangs(cell: str, seen: AuditSnapshot) -> Iterator[Problem]:
    """Yield gangs that wait for the wrong number of members, and failed ones whose members no reconciliation ends."""
    for gang, fields in sorted(seen.gangs.items()):
        states = [seen.states.get(claim_id) for claim_id in members_of(fields)]
        waiting = sum(state in LEASED for state in states)
        left = [state for state in states if state not in HELD]
        subject = f"gang:{gang}"
        if len(left) == len(states) or (waiting == 0 and ("end_reason" not in fields or "may_be_complete" in fields)):
            yield Problem(5, cell, subject, "key", "there", "gone", RepairKind.GANG, gang)
        elif left:
            yield Problem(
                5, cell, subject, "members", f"{len(states)}", f"{len(states) - len(left)}", RepairKind.GANG, gang
            )
        elif parse_int(fields.get("waiting", ""), -1) != waiting:
            yield Problem(
                2, cell, subject, "waiting", fields.get("waiting", "")[:40], f"{waiting}", RepairKind.GANG, gang
            )
        elif "end_reason" in fields and gang not in seen.gangs_to_reconcile:
            yield Problem(5, cell, subject, "failed gang", f"{len(states)} members", "ended", RepairKind.GANG, gang)


async def _remembered(cell: str, seen: AuditSnapshot) -> AsyncIterator[Problem]:
    """Yield ended claims without an expiry that should have one, and wrong entries of `shelved`.

    An ended claim without an expiry must be shelved and listed in `shelved`, or have something left to reconcile.
    """
    async for claim_id, end_reason in paced(seen.without_expiry.items()):
        if end_reason == EndReason.SHELVED:
            if claim_id not in seen.marks.shelved:
                yield Problem(5, cell, claim_id, "shelved claim", "not listed", "listed", RepairKind.DUE, claim_id)
        elif claim_id not in seen.marks.to_reconcile:
            yield Problem(5, cell, claim_id, "ended claim", "kept", "forgotten", RepairKind.DUE, claim_id)
    async for claim_id in paced(seen.marks.shelved):
        if says := seen.shelved.get(claim_id, "unknown"):
            yield Problem(5, cell, f"shelved {claim_id}", "entry", says, "none", RepairKind.DUE, claim_id)
