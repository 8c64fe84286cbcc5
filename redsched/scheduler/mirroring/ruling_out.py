"""Rule out cells that this scheduler has no replica of, by their summaries and what has changed since.

A refusal must reflect every reply of the store before the request, and a summary is a second old. So the hosts that the
feed names after the summary's position are read by themselves. If neither the summary nor these hosts admit the
request, no host of the cell took it at the time of that read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redsched.cache.columns import Columns
from redsched.cache.feed import Gap, check_dense
from redsched.cache.reading import read_into
from redsched.cache.summarize import summarized
from redsched.decide.filters.hosts import DOWN, HOSTS, NOT_ATTESTED, STATUS_DISABLED, STATUS_DRAINING
from redsched.decide.summary import ruled_out_by
from redsched.model import ReasonCount, Request
from redsched.model.records.explanations import Explanation
from redsched.scheduler.cells import Cell
from redsched.store.codec.keys import Kind
from redsched.store.codec.results import Change, Poll
from redsched.store.codec.summary import UNREADY, CellSummary

MAX_CHANGES = 1000
"""The most changes after a summary: with more, it says nothing."""
MAX_HOSTS = 100
"""The most hosts of a request that are looked up by name."""

_REASONS = dict(zip(UNREADY, (DOWN, NOT_ATTESTED, STATUS_DISABLED, STATUS_DRAINING), strict=True))


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Why no host of a cell takes a request, and whether the cell was settled when that was found."""

    explanation: Explanation
    settled: bool

    async def found(self) -> Explanation:
        """Return the explanation, as `PendingRefusal.found` does."""
        return self.explanation

    def found_at_once(self) -> Explanation:
        """Return the explanation, as `PendingRefusal.found_at_once` does."""
        return self.explanation


async def rule_out(cell: Cell, request: Request) -> RuledOut | None:
    """Return why no host of the cell takes the request now; None if one may, or if it is not known. Raises Unavailable.

    Reads the store, and ends claims that are over: their amounts count as free.
    """
    _, summary = await cell.store.summary.read()
    if summary is None:
        return None
    poll = await _poll(cell, summary)
    changed = _changed(summary, poll)
    if changed is None or poll.clock is None:
        return None
    now = await _summary_of(cell, summary.epoch, changed)
    reason = await _lacks_hosts(cell, request) or ruled_out_by(_with_shared_pools(summary, now), request)
    return RuledOut(_explanation(summary, reason), poll.clock.settled) if reason else None


async def _poll(cell: Cell, summary: CellSummary) -> Poll:
    """Read the feed after the summary, once no claim is overdue."""
    poll = await cell.store.feed.poll(summary.entry, MAX_CHANGES)
    due_ms, clock = poll.next_deadline_ms, poll.clock
    if clock is None or due_ms is None or due_ms > clock.now_ms:
        return poll
    cell.updater.observe(clock)
    await cell.expiry.expire_due()
    return await cell.store.feed.poll(summary.entry, MAX_CHANGES)


def _changed(summary: CellSummary, poll: Poll) -> Sequence[Change] | None:
    """Return all changes after the summary; None if some are missing, or the summary is of another epoch."""
    clock, changes = poll.clock, poll.changes
    if clock is None or clock.epoch != summary.epoch:
        return None
    try:
        check_dense(changes, summary.seq)
    except Gap:
        return None
    # The clock was read before the changes, which are complete if they reach its seq.
    return changes if summary.seq <= clock.seq <= summary.seq + len(changes) else None


async def _summary_of(cell: Cell, epoch: str, changes: Sequence[Change]) -> CellSummary:
    """Return the summary of the hosts and shared pools that have changed, as they are now."""
    columns = Columns()
    columns.set_epoch(epoch)
    for kind in (Kind.HOST, Kind.POOL):
        await read_into(cell.store, columns, kind, sorted({one.name for one in changes if one.kind == kind}))
    return summarized(columns)


def _with_shared_pools(before: CellSummary, now: CellSummary) -> tuple[CellSummary, CellSummary]:
    """Return both summaries with the shared pools of both: each host may take from either."""
    shared = {name: max(before.shared.get(name, 0), now.shared.get(name, 0)) for name in {*before.shared, *now.shared}}
    # Traits of hosts are not told apart from those of shared pools.
    traits = {**before.traits, **now.traits}
    cut = before.cut | now.cut
    return replace(before, shared=shared, traits=traits, cut=cut), replace(now, shared=shared, traits=traits, cut=cut)


async def _lacks_hosts(cell: Cell, request: Request) -> str:
    """Return the reason if the request names hosts, and none of them is in the cell."""
    if not 0 < len(request.hosts) <= MAX_HOSTS:
        return ""
    return "" if any(host.fields for host in await cell.store.hosts.read(sorted(request.hosts))) else HOSTS


def _explanation(summary: CellSummary, reason: str) -> Explanation:
    counts = [ReasonCount(_REASONS[name], summary.unready[name]) for name in UNREADY if summary.unready[name]]
    counts += [ReasonCount(reason, summary.ready)] if summary.ready else []
    return Explanation(hosts=summary.hosts, fits=0, reasons=tuple(counts), nearest=())
