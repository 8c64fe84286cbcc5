"""The scheduler library: replicate, decide, claim. The API and the CLI use nothing below it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redsched.model import Exceeded, RankedHost, ReasonCount
    from redsched.model.conditions import ABSENT, EXISTS, IfMatch
    from redsched.model.filters import ClaimFilter, EventFilter, UsageBy, usage_by
    from redsched.model.records.audit import AuditReport, Problem
    from redsched.model.records.bulk import BulkOutcome, BulkPage, BulkResult
    from redsched.model.records.capacity import Capacity, CapacityBy, CapacityRow, ClassCapacity
    from redsched.model.records.changes import Change, Reset
    from redsched.model.records.declared import AggregateView, QuotaView, ServerGroupView, SharedPoolView, UsageRow
    from redsched.model.records.events import Event
    from redsched.model.records.explanations import Check, ClosedHost, Explanation, HostCheck, Miss, PlacesMiss
    from redsched.model.records.hosts import DrainState, HostView, PoolView, SlotView
    from redsched.model.records.pages import Page
    from redsched.model.records.plans import (
        AddingPlan,
        Aim,
        Applied,
        AppliedMove,
        CapacityPlan,
        ClassAmounts,
        LeavingPlan,
        Move,
        PlannedMove,
        RebalancePlan,
        Redundancy,
        Room,
        Unplaced,
        WithoutDomain,
    )
    from redsched.model.records.selections import Selection, Selections
    from redsched.model.records.status import CellStatus, StatusProblem, StatusReport
    from redsched.scheduler.results import (
        ClaimCost,
        Effort,
        Finding,
        Readiness,
        ReportResult,
        Stats,
    )
    from redsched.scheduler.scheduler import Scheduler
    from redsched.store.codec.results import EndedPlacement, InboxEntry, JournaledClaim

__all__ = [
    "ABSENT",
    "EXISTS",
    "AddingPlan",
    "AggregateView",
    "Aim",
    "Applied",
    "AppliedMove",
    "AuditReport",
    "BulkOutcome",
    "BulkPage",
    "BulkResult",
    "Capacity",
    "CapacityBy",
    "CapacityPlan",
    "CapacityRow",
    "CellStatus",
    "Change",
    "Check",
    "ClaimCost",
    "ClaimFilter",
    "ClassAmounts",
    "ClassCapacity",
    "ClosedHost",
    "DrainState",
    "Effort",
    "EndedPlacement",
    "Event",
    "EventFilter",
    "Exceeded",
    "Explanation",
    "Finding",
    "HostCheck",
    "HostView",
    "IfMatch",
    "InboxEntry",
    "JournaledClaim",
    "LeavingPlan",
    "Miss",
    "Move",
    "Page",
    "PlacesMiss",
    "PlannedMove",
    "PoolView",
    "Problem",
    "QuotaView",
    "RankedHost",
    "Readiness",
    "ReasonCount",
    "RebalancePlan",
    "Redundancy",
    "ReportResult",
    "Reset",
    "Room",
    "Scheduler",
    "Selection",
    "Selections",
    "ServerGroupView",
    "SharedPoolView",
    "SlotView",
    "Stats",
    "StatusProblem",
    "StatusReport",
    "Unplaced",
    "UsageBy",
    "UsageRow",
    "WithoutDomain",
    "usage_by",
]

_MODULES = {
    "ABSENT": "redsched.model.conditions",
    "EXISTS": "redsched.model.conditions",
    "AddingPlan": "redsched.model.records.plans",
    "AggregateView": "redsched.model.records.declared",
    "Aim": "redsched.model.records.plans",
    "Applied": "redsched.model.records.plans",
    "AppliedMove": "redsched.model.records.plans",
    "AuditReport": "redsched.model.records.audit",
    "BulkOutcome": "redsched.model.records.bulk",
    "BulkPage": "redsched.model.records.bulk",
    "BulkResult": "redsched.model.records.bulk",
    "Capacity": "redsched.model.records.capacity",
    "CapacityBy": "redsched.model.records.capacity",
    "CapacityPlan": "redsched.model.records.plans",
    "CapacityRow": "redsched.model.records.capacity",
    "CellStatus": "redsched.model.records.status",
    "Change": "redsched.model.records.changes",
    "Check": "redsched.model.records.explanations",
    "ClaimCost": "redsched.scheduler.results",
    "ClaimFilter": "redsched.model.filters",
    "ClassAmounts": "redsched.model.records.plans",
    "ClassCapacity": "redsched.model.records.capacity",
    "ClosedHost": "redsched.model.records.explanations",
    "DrainState": "redsched.model.records.hosts",
    "Effort": "redsched.scheduler.results",
    "EndedPlacement": "redsched.store.codec.results",
    "EventFilter": "redsched.model.filters",
    "Event": "redsched.model.records.events",
    "Exceeded": "redsched.model",
    "Explanation": "redsched.model.records.explanations",
    "Finding": "redsched.scheduler.results",
    "HostCheck": "redsched.model.records.explanations",
    "HostView": "redsched.model.records.hosts",
    "IfMatch": "redsched.model.conditions",
    "InboxEntry": "redsched.store.codec.results",
    "JournaledClaim": "redsched.store.codec.results",
    "LeavingPlan": "redsched.model.records.plans",
    "Miss": "redsched.model.records.explanations",
    "PlacesMiss": "redsched.model.records.explanations",
    "Move": "redsched.model.records.plans",
    "Page": "redsched.model.records.pages",
    "PlannedMove": "redsched.model.records.plans",
    "PoolView": "redsched.model.records.hosts",
    "Problem": "redsched.model.records.audit",
    "QuotaView": "redsched.model.records.declared",
    "RankedHost": "redsched.model",
    "Readiness": "redsched.scheduler.results",
    "ReasonCount": "redsched.model",
    "RebalancePlan": "redsched.model.records.plans",
    "Redundancy": "redsched.model.records.plans",
    "ReportResult": "redsched.scheduler.results",
    "Reset": "redsched.model.records.changes",
    "Room": "redsched.model.records.plans",
    "Scheduler": "redsched.scheduler.scheduler",
    "Selection": "redsched.model.records.selections",
    "Selections": "redsched.model.records.selections",
    "ServerGroupView": "redsched.model.records.declared",
    "SharedPoolView": "redsched.model.records.declared",
    "SlotView": "redsched.model.records.hosts",
    "Stats": "redsched.scheduler.results",
    "StatusProblem": "redsched.model.records.status",
    "StatusReport": "redsched.model.records.status",
    "Unplaced": "redsched.model.records.plans",
    "UsageBy": "redsched.model.filters",
    "UsageRow": "redsched.model.records.declared",
    "WithoutDomain": "redsched.model.records.plans",
    "usage_by": "redsched.model.filters",
}
"""The module of each name. Imported on first access: what decides loads NumPy, and most commands decide nothing."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
