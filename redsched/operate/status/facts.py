"""What is read of a cell for its status. Claims are read through indexes only, and only the first of each."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from redsched.errors import RedschedError
from redsched.model import Claim, ClaimStatus, Reason
from redsched.model.validation import parse_int
from redsched.operate.status.broken_rules import BrokenRule, read_broken
from redsched.scheduler.cells import Cell
from redsched.scheduler.hosts.over import read_over, read_pools, unusable_of
from redsched.store.commands.fencing import FencingNote, FencingNotes
from redsched.store.commands.status import Announcement, AuditNote, CellHead, HostHead, Notification

MAX_DUE = 200
"""How many of the claims that a scheduler has to deal with are read."""
MAX_NOTIFICATIONS = 100
"""How many notifications are read of each host that has any."""
MAX_SEARCHES = 3
"""A pending claim is stuck after this many searches without a result."""
MIN_RESTARTS = 3
"""Work keeps ending after this many restarts in a row: the pause before the next one is 8 s or more by then."""
MAX_UNPLACED = 3
"""For how many claims of hosts that are evacuated is found out why they have no other place."""
UNPLACED_S = 5.0
"""The longest time for that: a command has to load the code that decides, and all hosts, first."""
MAX_GONE = 20
"""Of how many hosts that are down or lost the claims are named."""
OVERDUE_MS = 30_000
"""A deadline that passed this long ago should have been acted upon."""


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What was read of a cell. `due`: the first claims that a scheduler has to deal with, with their fields.

    `overdue`: the first claims whose deadline passed, or that were due, OVERDUE_MS ago. `inboxes`: notifications that
    hosts have not handled, oldest first for each host. `recorder`: the scheduler that writes the event log. `stuck`:
    why the work of the first claim of `ending` could not be stopped. `fencing`: what is noted of the fencing of hosts.
    `claims_on`: the ids of the claims on the first hosts that are down or lost. `unplaced`: why some of those that
    leave such a host have no other place now. `why_pending`: the last failures of the first claims of `stuck_pending`
    and `restarting`.
    `expected`: the statuses declared for hosts before their first report, with reasons.
    `refused`: epochs that hosts have seen and the API has refused, by host.
    `over`: what claims hold beyond the capacity of hosts and shared pools, by key: `host:h1`, `pool:lic`.
    `broken`: server groups with members where their hard policy does not allow them.
    `unusable`: of which of their slots nothing can ever be claimed, likewise.
    """

    head: CellHead
    hosts: Sequence[HostHead] = ()
    inboxes: Sequence[Notification] = ()
    due: Sequence[Claim] = ()
    overdue: Sequence[str] = ()
    shelved: int = 0
    schedulers: Sequence[Announcement] = ()
    recorder: str = ""
    audit: AuditNote | None = None
    by_name: dict[str, HostHead] = field(default_factory=dict)
    stuck: Reason | None = None
    fencing: FencingNotes = field(default_factory=FencingNotes)
    refused: Mapping[str, str] = field(default_factory=dict)
    claims_on: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unplaced: Mapping[str, str] = field(default_factory=dict)
    why_pending: Mapping[str, Reason] = field(default_factory=dict)
    over: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unusable: Mapping[str, Sequence[str]] = field(default_factory=dict)
    expected: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    broken: Sequence[BrokenRule] = ()

    @property
    def now_ms(self) -> int:
        """The store's time (Unix, ms)."""
        return self.head.now_ms

    @property
    def pending(self) -> list[Claim]:
        """Those of the due claims that wait for another place."""
        return [claim for claim in self.due if claim.state is ClaimStatus.PENDING]

    @property
    def stuck_pending(self) -> list[Claim]:
        """Those of them for which several searches have found no place."""
        return [one for one in self.pending if _is_stuck(one)]

    @property
    def restarting(self) -> list[Claim]:
        """Those of the due claims whose work has ended again and again soon after it was started."""
        return [one for one in self.pending if one.restarts >= MIN_RESTARTS and not _is_stuck(one)]

    @property
    def ending(self) -> list[Notification]:
        """What hosts that are up have yet to end, told the longest ago first."""
        here = (one for one in self.inboxes if one.op == "end" and self.is_up(one.host))
        return sorted(here, key=lambda one: one.at_ms)

    @property
    def down(self) -> dict[str, HostHead]:
        """The hosts whose lease has expired, and that were not written off, by name."""
        return {one.name: one for one in self.hosts if not one.is_written_off and one.until_ms <= self.now_ms}

    @property
    def fence_notes(self) -> dict[str, FencingNote]:
        """What is noted of the fencing of these hosts since they are down, by name."""
        down = self.down
        notes = self.fencing.hosts.items()
        return {name: note for name, note in notes if name in down and note.began_ms > down[name].until_ms}

    @property
    def gone(self) -> list[HostHead]:
        """The hosts that are down or lost and have claims, those with the most first."""
        gone = (one for one in self.hosts if one.claims and not self.is_up(one.name))
        return sorted(gone, key=lambda one: (-one.claims, one.name))

    def is_up(self, name: str) -> bool:
        """Return whether a host exists, was not written off, and its lease runs."""
        host = self.by_name.get(name)
        return host is not None and not host.is_written_off and host.until_ms > self.now_ms


def _is_stuck(pending: Claim) -> bool:
    return parse_int(pending.raw.get("searches", ""), 0) >= MAX_SEARCHES


Unmovable = Callable[[Cell, Sequence[Claim]], Awaitable[dict[str, str]]]
"""Return the claims that have to leave their hosts and have no other place now, and why."""


async def read_facts(cell: Cell) -> CellFacts:
    """Read a cell, without `unplaced`. Raises StoreUnavailable."""
    store = cell.store
    head = await store.status.head()
    hosts = await store.status.hosts()
    inboxes = await store.status.notifications([one.name for one in hosts if one.notified], MAX_NOTIFICATIONS)
    due_ids = await store.due.to_reconcile(2**53, 0, MAX_DUE)
    before_ms = head.now_ms - OVERDUE_MS
    late = [await of(before_ms, 0, MAX_DUE) for of in (store.due.expired, store.due.to_reconcile)]
    due = await store.claims.read(due_ids)
    shelved = await store.claims.shelved_ids()
    facts = CellFacts(
        head,
        hosts,
        inboxes,
        tuple(due[one] for one in due_ids if one in due),
        tuple(dict.fromkeys((*late[0], *late[1]))),
        len(shelved),
        await store.status.schedulers(head.now_ms),
        await store.status.recorder(),
        await store.status.last_audit(),
        {one.name: one for one in hosts},
        fencing=await store.fencing.notes(),
        refused=await store.status.refused(head.epoch),
    )
    away = [one.name for one in facts.gone[:MAX_GONE]]
    ids = await store.hosts.claim_ids_of(away)
    facts = replace(facts, claims_on={name: sorted(some) for name, some in zip(away, ids, strict=True)})
    pools = await read_pools(store)
    facts = replace(facts, over=await read_over(store, hosts, pools), unusable=unusable_of(hosts, pools))
    facts = replace(facts, expected=await store.hosts.expected(), broken=await read_broken(store, hosts))
    first_pending = [one.claim_id for one in (*facts.stuck_pending[:1], *facts.restarting[:1])]
    facts = replace(facts, why_pending=await store.claims.reasons(first_pending))
    for first in facts.ending[:1]:
        failed, stuck = await store.claims.failures([first.claim])
        if first.claim in stuck:
            return replace(facts, stuck=stuck[first.claim].after(failed.get(first.claim)))
    return facts


async def with_unplaced(cell: Cell, facts: CellFacts, unmovable: Unmovable) -> CellFacts:
    """Return the facts with why the first claims on lost hosts have no other place, if that is found out in time."""
    leaving = [one.name for one in facts.gone if one.is_evacuated]
    ids = [claim for name in leaving for claim in facts.claims_on.get(name, ())][:MAX_UNPLACED]
    if not ids:
        return facts
    with suppress(TimeoutError, RedschedError):
        async with asyncio.timeout(UNPLACED_S):
            claims = await cell.store.claims.read(ids)
            return replace(facts, unplaced=await unmovable(cell, tuple(claims.values())))
    return facts
