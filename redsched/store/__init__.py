"""The only rooms that know Redis: connections, keys, and one typed coroutine for each Lua script."""

from redsched.store.answers import (
    Answer,
    AttestAnswer,
    AuditedHost,
    Change,
    ClaimAnswer,
    ClaimCall,
    Clock,
    Event,
    FeedEnd,
    Former,
    Giving,
    HeldClaim,
    HostHashes,
    InboxEntry,
    LookedAt,
    Member,
    Placed,
    Poll,
    Recorded,
    ReportAnswer,
    Thing,
)
from redsched.store.cell import CellStore
from redsched.store.claim_wire import drawn_on, exceeded
from redsched.store.keys import Kind
from redsched.store.outcomes import Cause, Outcome
from redsched.store.store import Store

__all__ = [
    "Answer",
    "AttestAnswer",
    "AuditedHost",
    "Cause",
    "CellStore",
    "Change",
    "ClaimAnswer",
    "ClaimCall",
    "Clock",
    "Event",
    "FeedEnd",
    "Former",
    "Giving",
    "HeldClaim",
    "HostHashes",
    "InboxEntry",
    "Kind",
    "LookedAt",
    "Member",
    "Outcome",
    "Placed",
    "Poll",
    "Recorded",
    "ReportAnswer",
    "Store",
    "Thing",
    "drawn_on",
    "exceeded",
]
