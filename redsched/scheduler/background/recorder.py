"""Copy the changes of a cell from its feed to its event log, each once.

The scheduler that holds the duty records. The store keeps the position that the log has reached, and the script that
appends compares it, so concurrent recorders or a repeated call append nothing twice. It also compares the epoch, so
that changes that a failover has lost are not recorded. Changes that were trimmed from the
feed before they were recorded become one event with their number.
"""

from collections.abc import Iterator, Mapping, Sequence

from redsched.pacing import paced
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.fields import AMOUNT, HELD_AMOUNT, placement_fields
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import Change, Recorded
from redsched.store.commands.feed import FEED_START

BATCH = 100
"""Few enough to delay a concurrent request by some milliseconds at most: one event takes 50 to 100 us here."""

HOLE = "missing"
REPAIRED = "repaired"

_OF_CLAIM = ("project", "consumer", "gang")
_OF_CHANGE = ("end_reason", "reason")
_BEGINS = frozenset(("claimed", "local"))
"""Changes that begin a placement. Amounts that the host held for the claim before belong to another placement."""
_DECLARED = ("declared", "removed", REPAIRED)
_NEWS_OF_HOST = ("up", "down", "attest", "status", "lost", "membership", "removed", REPAIRED)
"""Changes of hosts that become events. Reports do not: they are frequent, and record no action of a person."""


class Recorder:
    """Records the events of one cell."""

    def __init__(self, cell: CellStore, settings: Settings) -> None:
        self._cell = cell
        self._keep_s, self._most = settings.events_keep_s, settings.events_most

    async def record(self) -> int:
        """Record the changes in the feed. Returns the number of events. Raises StoreUnavailable, OutcomeUnknown."""
        recorded = 0
        while True:
            last = await self._cell.events.recorded()
            poll = await self._cell.feed.poll(last.entry_id or FEED_START, BATCH)
            if poll.clock is None or not poll.changes:
                return recorded
            events = await self._events(last, poll.changes)
            upto = Recorded(poll.changes[-1].entry_id, poll.changes[-1].seq)
            epoch = poll.clock.epoch
            answer = await self._cell.events.record(last.entry_id, upto, events, epoch, self._keep_s, self._most)
            if answer.outcome is Outcome.OK:
                recorded += len(events)
            if answer.outcome is not Outcome.OK or len(poll.changes) < BATCH:
                return recorded

    async def _events(self, last: Recorded, changes: Sequence[Change]) -> list[dict[str, str]]:
        ids = sorted({change.fields["claim"] for change in changes if "claim" in change.fields})
        claims = await self._cell.audit.claim_hashes(ids)
        amounts = await _amounts_at(changes, claims)
        events: list[dict[str, str]] = []
        seq = last.seq
        async for change in paced(changes):
            if change.seq > seq + 1:
                events.append({**_head(change, HOLE), "changes": str(change.seq - seq - 1)})
            seq = change.seq
            events += _events_of(change, claims, amounts)
        return events


async def _amounts_at(
    changes: Sequence[Change], claims: Mapping[str, Mapping[str, str]]
) -> dict[int, Mapping[str, str]]:
    """Return the amounts of the placement concerned, as event fields, by the `seq` of each change of a claim.

    Reads the changes backwards: the claim has the amounts of its current placements, and the change that ended a
    placement has the amounts of that one.
    """
    held = {
        (claim_id, one.get("host", "")): _prefixed(AMOUNT, one)
        async for claim_id, fields in paced(claims.items())
        for one in placement_fields(fields)
    }
    found: dict[int, Mapping[str, str]] = {}
    async for change in paced(reversed(changes)):
        key = change.fields.get("claim", ""), change.name
        if ended := _prefixed(HELD_AMOUNT, change.fields):
            held[key] = {AMOUNT + name.removeprefix(HELD_AMOUNT): value for name, value in ended.items()}
        found[change.seq] = held.get(key, {})
        if change.op in _BEGINS:
            held.pop(key, None)
    return found


def _prefixed(prefix: str, fields: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if name.startswith(prefix)}


def _events_of(
    change: Change, claims: Mapping[str, Mapping[str, str]], amounts: Mapping[int, Mapping[str, str]]
) -> Iterator[dict[str, str]]:
    reason = {"reason": change.fields["reason"]} if "reason" in change.fields else {}
    if claim_id := change.fields.get("claim"):
        details = _of_claim(claims.get(claim_id, {})) | dict(amounts[change.seq]) | _of_change(change)
        yield {**_head(change, change.op), "claim": claim_id, "host": change.name, **details}
    elif change.kind == Kind.HOST and change.op in _NEWS_OF_HOST:
        status = {"status": change.fields["status"]} if "status" in change.fields else {}
        yield {**_head(change, REPAIRED if reason else change.op), "host": change.name, **status, **reason}
    elif change.kind != Kind.HOST and change.op in _DECLARED:
        yield {**_head(change, change.op), "thing": f"{change.kind}:{change.name}", **reason}


def _head(change: Change, kind: str) -> dict[str, str]:
    """Return the fields common to all events. An entry's id begins with the store's time in ms."""
    return {"at_ms": change.entry_id.partition("-")[0], "seq": str(change.seq), "kind": kind}


def _of_claim(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the project, consumer and gang of the claim."""
    return {name: fields[name] for name in _OF_CLAIM if fields.get(name)}


def _of_change(change: Change) -> dict[str, str]:
    """Return the end reason and reason recorded in the change itself: the claim may have changed since."""
    return {name: change.fields[name] for name in _OF_CHANGE if name in change.fields}
