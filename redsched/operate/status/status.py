"""Put the status of a store and its cells together.

It reads every host in a few fields, and of the claims only those that something waits for, so that the number of claims
does not matter.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator

from redsched import aio
from redsched.errors import StoreUnavailable
from redsched.model import HostStatus
from redsched.model.records.status import (
    AuditStatus,
    CellStatus,
    ClosedHost,
    HostCounts,
    SchedulerStatus,
    ServerStatus,
    StatusReport,
)
from redsched.operate.status import cell_problems
from redsched.operate.status.facts import MAX_DUE, MAX_NOTIFICATIONS, CellFacts, Unmovable, read_facts, with_unplaced
from redsched.operate.status.servers import problems_of, server_of
from redsched.scheduler.cells import Cells
from redsched.settings import Settings
from redsched.store.commands.status import AuditNote, HostHead
from redsched.store.store import Store
from redsched.wording import MAX_NAMED

_CLOSED = (HostStatus.DISABLED, HostStatus.DRAINING)
STATUS_S = 5.0
"""The longest reading of a status."""


async def status(store: Store, settings: Settings, cells: Cells, unmovable: Unmovable) -> StatusReport:
    """Return the state of the store and of all cells, and what is wrong.

    Raises StoreUnavailable, also if the store has not replied within STATUS_S.
    """
    servers, read = await _read(store, cells)
    found = await aio.gather(with_unplaced(cell, facts, unmovable) for cell, facts in zip(cells, read, strict=True))
    named = [(cell.name, facts) for cell, facts in zip(cells, found, strict=True)]
    of_servers = [problem for server in servers for problem in problems_of(server, settings)]
    of_cells = [problem for name, facts in named for problem in cell_problems.problems_of(name, facts)]
    statuses = [_status(name, facts) for name, facts in named]
    return StatusReport(servers, str(settings.durability), statuses, [*of_servers, *of_cells])


async def _read(store: Store, cells: Cells) -> tuple[list[ServerStatus], list[CellFacts]]:
    try:
        async with asyncio.timeout(STATUS_S):
            servers = [server_of(name, info) for name, info in (await store.servers()).items()]
            return servers, await aio.gather(read_facts(cell) for cell in cells)
    except TimeoutError as error:
        raise StoreUnavailable(f"the store did not give its status within {STATUS_S:g} s; try again") from error


def _status(name: str, facts: CellFacts) -> CellStatus:
    head, now_ms = facts.head, facts.now_ms
    claims, at_least = _claims(facts)
    return CellStatus(
        name=name,
        epoch=head.epoch,
        epoch_began_ms=head.began_ms,
        now_ms=now_ms,
        settled=head.settled,
        settle_at_ms=None if head.settled else head.settle_at_ms,
        unattested=0 if head.settled else head.unattested,
        hosts=_hosts(facts),
        claims=claims,
        at_least=at_least,
        draining=tuple(one.name for one in facts.hosts if one.draining and one.claims)[:MAX_NAMED],
        closed=_closed(facts),
        schedulers=tuple(
            SchedulerStatus(one.id, one.version, one.node, one.pid, one.lag_ms, max(0, now_ms - one.at_ms))
            for one in facts.schedulers
        ),
        audit=None if facts.audit is None else _audit(facts.audit),
    )


def _closed(facts: CellFacts) -> tuple[ClosedHost, ...]:
    closed = [one for one in facts.hosts if one.status in _CLOSED and not one.is_written_off]
    closed.sort(key=lambda one: (-one.claims, one.name))
    known = [ClosedHost(one.name, one.status, one.claims, bool(one.draining), one.reason) for one in closed]
    return (*known, *_expected(facts))[:MAX_NAMED]


def _expected(facts: CellFacts) -> Iterator[ClosedHost]:
    """Yield the hosts whose status was declared before their first report."""
    for name, (status, reason) in facts.expected.items():
        yield ClosedHost(name, status, 0, False, f"before its first report{f': {reason}' if reason else ''}")


def _hosts(facts: CellFacts) -> HostCounts:
    up = [one for one in facts.hosts if facts.is_up(one.name)]
    written_off = sum(one.is_written_off for one in facts.hosts)
    statuses = Counter(one.status for one in facts.hosts)
    slowest = max(up, key=lambda one: _unheard_ms(one, facts.now_ms), default=None)
    agents = Counter(one.agent_version for one in facts.hosts if one.has_agent)
    return HostCounts(
        total=len(facts.hosts),
        up=len(up),
        down=len(facts.hosts) - len(up) - written_off,
        written_off=written_off,
        unattested=sum(one.epoch != facts.head.epoch and not one.is_written_off for one in facts.hosts),
        disabled=statuses["disabled"],
        draining=statuses["draining"],
        with_agent=sum(one.has_agent for one in facts.hosts),
        agent_versions=dict(sorted(agents.items())),
        slowest="" if slowest is None else slowest.name,
        slowest_ms=0 if slowest is None else _unheard_ms(slowest, facts.now_ms),
    )


def _unheard_ms(host: HostHead, now_ms: int) -> int:
    """Return how long ago a host has renewed its lease."""
    return max(0, now_ms - (host.until_ms - host.lease_ms))


def _claims(facts: CellFacts) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the numbers of claims by state, and the states of which there may be more.

    A host counts its placements, and those that are not active yet. Each that is ending has a notification in its
    inbox, except on a host that has not attested: there it still counts as active.
    """
    placed, starting = (sum(getattr(one, name) for one in facts.hosts) for name in ("claims", "starting"))
    ending = len({(one.host, one.claim) for one in facts.inboxes if one.op == "end"})
    per_host = Counter(one.host for one in facts.inboxes)
    cut = [
        *(["ending"] if max(per_host.values(), default=0) >= MAX_NOTIFICATIONS else []),
        *(["pending"] if len(facts.due) >= MAX_DUE else []),
    ]
    counts = {
        "active": max(0, placed - starting - ending),
        "starting": starting,
        "ending": ending,
        "pending": len(facts.pending),
        "shelved": facts.shelved,
    }
    return counts, tuple(cut)


def _audit(note: AuditNote) -> AuditStatus:
    return AuditStatus(note.at_ms, note.hosts, note.claims, note.broken, note.repaired, note.problems)
