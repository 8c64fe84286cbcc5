"""The scheduler library: replicate, decide, claim. The API and the CLI use nothing below it."""

from redsched.decide import Check, Explanation, HostCheck, Miss, ReasonCount
from redsched.model import Exceeded
from redsched.scheduler.claims.bulk import BulkOutcome, BulkResult
from redsched.scheduler.claims.listing import ClaimFilter
from redsched.scheduler.observe.events import EventFilter
from redsched.scheduler.observe.usage import UsageBy, usage_by
from redsched.scheduler.results import (
    AggregateView,
    AuditReport,
    Change,
    DrainState,
    Effort,
    EventView,
    HostView,
    Page,
    PoolView,
    Problem,
    QuotaView,
    Readiness,
    ReportResult,
    Reset,
    Selection,
    Selections,
    ServerGroupView,
    SharedPoolView,
    SlotView,
    Stats,
    UsageRow,
)
from redsched.scheduler.scheduler import Scheduler
from redsched.store.codec.results import EndedPlacement, InboxEntry, JournaledClaim
from redsched.store.codec.tags import ANY, IfMatch

__all__ = [
    "ANY",
    "AggregateView",
    "AuditReport",
    "BulkOutcome",
    "BulkResult",
    "Change",
    "Check",
    "ClaimFilter",
    "DrainState",
    "Effort",
    "EndedPlacement",
    "EventFilter",
    "EventView",
    "Exceeded",
    "Explanation",
    "HostCheck",
    "HostView",
    "IfMatch",
    "InboxEntry",
    "JournaledClaim",
    "Miss",
    "Page",
    "PoolView",
    "Problem",
    "QuotaView",
    "Readiness",
    "ReasonCount",
    "ReportResult",
    "Reset",
    "Scheduler",
    "Selection",
    "Selections",
    "ServerGroupView",
    "SharedPoolView",
    "SlotView",
    "Stats",
    "UsageBy",
    "UsageRow",
    "usage_by",
]
