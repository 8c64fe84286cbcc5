"""The only rooms that know Redis: connections, keys, and one typed coroutine for each Lua script."""

from redsched.store.answers import (
    Again,
    Answer,
    AttestAnswer,
    AuditedHost,
    Change,
    ClaimAnswer,
    ClaimCall,
    Clock,
    EndedPlacement,
    Event,
    FeedEnd,
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
from redsched.store.claim_fields import AMOUNT, WANTED, amounts_in, record_of, record_with
from redsched.store.claim_wire import counted_by, drawn_on
from redsched.store.keys import Kind
from redsched.store.ledger_reads import LedgerEntry, LedgerState
from redsched.store.ledgers import Epochs, Ledgers, Taking
from redsched.store.outcomes import Cause, Outcome
from redsched.store.quota_calls import Marked
from redsched.store.store import Store

__all__ = [
    "AMOUNT",
    "WANTED",
    "Again",
    "Answer",
    "AttestAnswer",
    "AuditedHost",
    "Cause",
    "CellStore",
    "Change",
    "ClaimAnswer",
    "ClaimCall",
    "Clock",
    "EndedPlacement",
    "Epochs",
    "Event",
    "FeedEnd",
    "Giving",
    "HeldClaim",
    "HostHashes",
    "InboxEntry",
    "Kind",
    "LedgerEntry",
    "LedgerState",
    "Ledgers",
    "LookedAt",
    "Marked",
    "Member",
    "Outcome",
    "Placed",
    "Poll",
    "Recorded",
    "ReportAnswer",
    "Store",
    "Taking",
    "Thing",
    "amounts_in",
    "counted_by",
    "drawn_on",
    "record_of",
    "record_with",
]
