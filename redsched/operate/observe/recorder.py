"""Copy the changes of a cell from its feed to its event log, each once.

The scheduler that holds the duty records. The store keeps the position that the log has reached, and the script that
appends compares it, so concurrent recorders or a repeated call append nothing twice. It also compares the epoch, so
that changes that a failover has lost are not recorded. Changes that were trimmed from the
feed before they were recorded become one event with their number.

The replica of the same scheduler has read the same changes before: they are taken from there as far as it has them. So
is what its own calls have placed; other claims are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from redsched.cache.updater import ReplicaUpdater
from redsched.pacing import paced
from redsched.scheduler.background.own_placements import OwnPlacements
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.fields import AMOUNT, HELD_AMOUNT, placement_fields
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Change, Recorded
from redsched.store.commands.feed import FEED_START

BATCH = 100
"""Few enough to delay a concurrent request by some milliseconds at most: one event takes 20 to 40 us here."""

HOLE = "missing"
REPAIRED = "repaired"

_OF_CLAIM = ("project", "consumer", "gang")
_ORIGIN = ("actor", "request_id")
_OF_CHANGE = ("end_reason", "reason", *_ORIGIN)
_BEGINS = frozenset(("claimed", "local"))
"""Changes that begin a placement. Amounts that the host held for the claim before belong to another placement."""
_OVER = "over-capacity"
_DECLARED = ("declared", "removed", _OVER, "rule-broken", REPAIRED)
_NEWS_OF_HOST = (
    *("up", "down", "attest", "status", "fencing", "fence-failed", "lost", "membership", "removed", _OVER),
    REPAIRED,
)
"""Changes of hosts that become events. Reports do not: they are frequent, and record no action of a person."""
_WITH_REASON = ("fence-failed", "lost", _OVER)
"""Changes of hosts that may have a reason, although they are no repairs."""


@dataclass(frozen=True, slots=True)
class _Unrecorded:
    """The next changes to record, the epoch in which they were read, and whether the feed had no more."""

    epoch: str
    changes: Sequence[Change]
    is_end: bool


class Recorder:
    """Records the events of one cell. `replica`: the one that this process has of the cell, if any."""

    def __init__(
        self,
        cell: CellStore,
        settings: Settings,
        replica: ReplicaUpdater | None = None,
        own: OwnPlacements | None = None,
    ) -> None:
        self._cell = cell
        self._replica = replica
        self._own = OwnPlacements() if own is None else own
        self._keep_s, self._most = settings.events_keep_s, settings.events_most

    async def record(self) -> int:
        """Record the changes in the feed. Returns the number of events. Raises StoreUnavailable, OutcomeUnknown."""
        recorded, last, is_end = 0, await self._cell.events.recorded(), False
        while not is_end:
            found = self._in_replica(last) or await self._in_feed(last)
            if not found.changes:
                break
            events = await self._events(last, found)
            upto = Recorded(found.changes[-1].entry_id, found.changes[-1].seq)
            answer = await self._cell.events.record(last.entry_id, upto, events, found.epoch, self._keep_s, self._most)
            if answer.outcome is not Outcome.OK:
                break
            recorded, last, is_end = recorded + len(events), upto, found.is_end
        return recorded

    def _in_replica(self, last: Recorded) -> _Unrecorded | None:
        """Return the changes after the last recorded one that the replica has read; None if it does not have them."""
        known = self._replica.recent if self._replica else ()
        at = last.seq - known[0].seq if known else -1
        # The numbers may have been given out again in another epoch, so the last entry must be the same one.
        if self._replica is None or not 0 <= at < len(known) - 1 or known[at].entry_id != last.entry_id:
            return None
        return _Unrecorded(self._replica.epoch, list(islice(known, at + 1, at + 1 + BATCH)), is_end=False)

    async def _in_feed(self, last: Recorded) -> _Unrecorded:
        poll = await self._cell.feed.poll(last.entry_id or FEED_START, BATCH)
        if poll.clock is None:
            return _Unrecorded("", (), is_end=True)
        return _Unrecorded(poll.clock.epoch, poll.changes, is_end=len(poll.changes) < BATCH)

    async def _events(self, last: Recorded, found: _Unrecorded) -> list[dict[str, str]]:
        details = self._placed_here(found)
        details |= await self._read([change for change in found.changes if change.seq not in details])
        events: list[dict[str, str]] = []
        seq = last.seq
        async for change in paced(found.changes):
            if change.seq > seq + 1:
                events.append({**_head(change, HOLE), "changes": str(change.seq - seq - 1)})
            seq = change.seq
            if change.fields.get("claim"):
                events.append(_of_claim(change, details[seq]))
            elif event := _of_object(change):
                events.append(event)
        return events

    def _placed_here(self, found: _Unrecorded) -> dict[int, dict[str, str]]:
        """Return the owner, gang and amounts of the claims that this process has placed, by the `seq` of the change."""
        begun = (change.seq for change in found.changes if change.op == "claimed")
        known = ((seq, self._own.take(f"{found.epoch}.{seq}")) for seq in begun)
        return {seq: details for seq, details in known if details is not None}

    async def _read(self, changes: Sequence[Change]) -> dict[int, dict[str, str]]:
        """Return the owner, gang and amounts of other claims."""
        ids = {change.fields["claim"]: None for change in changes if change.fields.get("claim")}
        claims = await self._cell.audit.claim_hashes(list(ids))
        owners = {claim_id: _owner(fields) for claim_id, fields in claims.items()}
        amounts = await _amounts_at(changes, claims)
        if any(change.op in _BEGINS and not amounts[change.seq] for change in changes):
            # Its placement has ended since. The change that ended it has the amounts.
            later = (await self._cell.feed.poll(changes[-1].entry_id, BATCH)).changes
            amounts = await _amounts_at([*changes, *later], claims)
        return {
            change.seq: {**owners.get(change.fields.get("claim", ""), {}), **amounts[change.seq]} for change in changes
        }


async def _amounts_at(
    changes: Sequence[Change], claims: Mapping[str, Mapping[str, str]]
) -> dict[int, Mapping[str, str]]:
    """Return the amounts of the placement concerned, as event fields, by the `seq` of each change of a claim.

    Reads the changes backwards: the claim has the amounts of its current placements, and the change that ended a
    placement has the amounts of that one.
    """
    held: dict[str, dict[str, Mapping[str, str]]] = {}
    found: dict[int, Mapping[str, str]] = {}
    async for change in paced(reversed(changes)):
        claim_id, host = change.fields.get("claim", ""), change.name
        if claim_id not in held:
            placements = placement_fields(claims.get(claim_id, {}))
            held[claim_id] = {one.get("host", ""): _prefixed(AMOUNT, one) for one in placements}
        by_host = held[claim_id]
        if ended := _prefixed(HELD_AMOUNT, change.fields):
            by_host[host] = {AMOUNT + name.removeprefix(HELD_AMOUNT): value for name, value in ended.items()}
        found[change.seq] = by_host.get(host, {})
        if change.op in _BEGINS:
            by_host.pop(host, None)
    return found


def _prefixed(prefix: str, fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name.startswith(prefix)}


def _owner(claim: Mapping[str, str]) -> dict[str, str]:
    """Return the project, consumer and gang of a claim."""
    return {name: claim[name] for name in _OF_CLAIM if claim.get(name)}


def _of_claim(change: Change, details: Mapping[str, str]) -> dict[str, str]:
    """Return the event for a change of a claim, with the end reason and reason that are recorded in the change itself.

    Those in the claim may be of a later change.
    """
    event = {**_head(change, change.op), "claim": change.fields["claim"], "host": change.name, **details}
    for name in _OF_CHANGE:
        if name in change.fields:
            event[name] = change.fields[name]
    return event


def _of_object(change: Change) -> dict[str, str] | None:
    """Return the event for a change of a host or of a declared object; None if it is none."""
    reason = {"reason": change.fields["reason"]} if "reason" in change.fields else {}
    origin = {name: change.fields[name] for name in _ORIGIN if name in change.fields}
    if change.kind == Kind.HOST and change.op in _NEWS_OF_HOST:
        status = {"status": change.fields["status"]} if "status" in change.fields else {}
        kind = REPAIRED if reason and change.op not in _WITH_REASON else change.op
        if "status_reason" in change.fields:  # not `reason`, which only a repair has
            reason = {"reason": change.fields["status_reason"]}
        return {**_head(change, kind), "host": change.name, **status, **reason, **origin}
    if change.kind != Kind.HOST and change.op in _DECLARED:
        return {**_head(change, change.op), "thing": f"{change.kind}:{change.name}", **reason, **origin}
    return None


def _head(change: Change, kind: str) -> dict[str, str]:
    """Return the fields common to all events. An entry's id begins with the store's time in ms."""
    return {"at_ms": change.entry_id.partition("-")[0], "seq": str(change.seq), "kind": kind}
