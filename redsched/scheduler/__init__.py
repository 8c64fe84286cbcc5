"""The scheduler library: mirror, decide, claim. All that the API and the CLI talk to."""

from redsched.decide import Check, Explanation, HostCheck, Miss, ReasonCount
from redsched.scheduler.scheduler import Scheduler
from redsched.scheduler.views import (
    AuditReport,
    Change,
    Effort,
    HostView,
    Page,
    Problem,
    Readiness,
    ReportResult,
    Reset,
    Selection,
    Selections,
    SlotView,
    Stats,
)
from redsched.store import HeldClaim, InboxEntry

__all__ = [
    "AuditReport",
    "Change",
    "Check",
    "Effort",
    "Explanation",
    "HeldClaim",
    "HostCheck",
    "HostView",
    "InboxEntry",
    "Miss",
    "Page",
    "Problem",
    "Readiness",
    "ReasonCount",
    "ReportResult",
    "Reset",
    "Scheduler",
    "Selection",
    "Selections",
    "SlotView",
    "Stats",
]
