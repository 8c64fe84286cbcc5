"""Repair the problems that an audit found, with one script for each kind. Each script checks again before it writes."""

from collections.abc import Mapping, Sequence

from redsched import logs
from redsched.model import ClaimStatus
from redsched.model.records.audit import Problem, RepairKind
from redsched.operate.audit.cache import cache_problems
from redsched.operate.audit.recheck import reason_of
from redsched.operate.audit.snapshot import AuditSnapshot, members_of, read_cell
from redsched.scheduler.cells import Cell
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.fields import claim_from
from redsched.store.codec.outcomes import Outcome

MAX_CLAIMS_OF_HOST = 5000
"""The most claims of one group or pool that one script may read: it blocks the server meanwhile."""

log = logs.get_logger(__name__)


async def repair_problems(cell: Cell, problems: Sequence[Problem], operator: bool) -> None:
    """Repair what can be repaired.

    With `operator`, also end claims that only a person may end. Raises StoreUnavailable.
    """
    subjects = {(one.repair, one.subject): one for one in reversed(problems) if one.repair}
    if not subjects:
        return
    seen = await read_cell(cell.store)
    # The replica comes last: repairs of the store reach it through the feed.
    for (kind, subject), problem in sorted(subjects.items(), key=lambda one: one[0][0] is RepairKind.CACHE):
        outcome = await _repair(cell, seen, kind, subject, reason_of(problem), operator)
        log.warning("repaired", cell=cell.name, thing=problem.thing, problem=problem.detail, outcome=outcome)
    await seen.free_in_slices()


async def _repair(
    cell: Cell, seen: AuditSnapshot, kind: RepairKind | None, subject: str, reason: str, operator: bool
) -> str:
    store, suspects = cell.store, seen.unlisted.get(subject, ())
    if kind is RepairKind.HOST:
        return (await store.repair.host(subject, reason, suspects)).outcome
    if kind is RepairKind.MEMBERS:
        return (await store.repair.members(subject, reason)).outcome
    if kind is RepairKind.ENDING:
        return "OK" if await store.claims.reconcile([subject]) else "ALREADY_DONE"
    if kind is RepairKind.GONE_HOST:
        return (await store.repair.removed_host(subject, reason, operator, suspects)).outcome
    if kind is RepairKind.COUNTS:
        return await _repair_counts(store, subject, reason)
    if kind is RepairKind.DUE:
        return (await store.repair.due(reason, [subject])).outcome
    if kind is RepairKind.GANG:
        return await _repair_gang(store, subject, reason, members_of(seen.gangs.get(subject, {})))
    return await _repair_cache(cell)


async def _repair_gang(store: CellStore, gang: str, reason: str, members: Sequence[str]) -> str:
    """Correct the members that a gang waits for; if it has failed, end those left, as reconciliation would."""
    outcome = (await store.repair.gang(gang, reason, members)).outcome
    if "end_reason" not in (await store.audit.gang_hashes([gang])).get(gang, {}):
        return outcome
    return Outcome.OK if await store.gangs.end(gang) else Outcome.NOT_ATTESTED


async def _repair_cache(cell: Cell) -> str:
    """Reload the replica if it still differs. Repairs of the store reach it through the feed and need no reload."""
    if not await cache_problems(cell.updater):
        return "ALREADY_DONE"
    cell.updater.force_snapshot()
    await cell.updater.catch_up()
    return "OK"


async def _repair_counts(store: CellStore, subject: str, reason: str) -> str:
    """Recompute an object's counts. Its version is read first: if it has not changed, the claims are complete."""
    kind, _, name = subject.partition(":")
    version = await store.audit.version_of(kind, name)
    ids: list[str] = []

    def at_claim(claim_id: str, fields: Mapping[str, str]) -> None:
        lives = fields.get("state", ClaimStatus.ENDED) != ClaimStatus.ENDED
        if lives and subject in counted_by(claim_from(store.name, claim_id, fields)):
            ids.append(claim_id)

    await (await read_cell(store, on_claim=at_claim)).free_in_slices()
    if len(ids) > MAX_CLAIMS_OF_HOST:
        return f"more than {MAX_CLAIMS_OF_HOST} claims"
    return (await store.repair.counts(subject, version, reason, ids)).outcome
