"""The scheduler library: replicate, decide, claim. The API and the CLI use nothing below it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redsched.decide import Check, Explanation, HostCheck, Miss, RankedHost, ReasonCount
    from redsched.model import Exceeded
    from redsched.scheduler.claims.bulk import BulkOutcome, BulkResult
    from redsched.scheduler.claims.listing import ClaimFilter
    from redsched.scheduler.observe.events import EventFilter
    from redsched.scheduler.observe.usage import UsageBy, usage_by
    from redsched.scheduler.plans.results import (
        AddingPlan,
        Aim,
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
    from redsched.scheduler.results import (
        AggregateView,
        AuditReport,
        Change,
        ClaimCost,
        DrainState,
        Effort,
        EventView,
        Finding,
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
    from redsched.scheduler.status.results import CellStatus, StatusProblem, StatusReport
    from redsched.store.codec.results import EndedPlacement, InboxEntry, JournaledClaim
    from redsched.store.codec.tags import ANY, IfMatch

__all__ = [
    "ANY",
    "AddingPlan",
    "AggregateView",
    "Aim",
    "AppliedMove",
    "AuditReport",
    "BulkOutcome",
    "BulkResult",
    "CapacityPlan",
    "CellStatus",
    "Change",
    "Check",
    "ClaimCost",
    "ClaimFilter",
    "ClassAmounts",
    "DrainState",
    "Effort",
    "EndedPlacement",
    "EventFilter",
    "EventView",
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
    "ANY": "redsched.store.codec.tags",
    "AddingPlan": "redsched.scheduler.plans.results",
    "AggregateView": "redsched.scheduler.results",
    "Aim": "redsched.scheduler.plans.results",
    "AppliedMove": "redsched.scheduler.plans.results",
    "AuditReport": "redsched.scheduler.results",
    "BulkOutcome": "redsched.scheduler.claims.bulk",
    "BulkResult": "redsched.scheduler.claims.bulk",
    "CapacityPlan": "redsched.scheduler.plans.results",
    "CellStatus": "redsched.scheduler.status.results",
    "Change": "redsched.scheduler.results",
    "Check": "redsched.decide",
    "ClaimCost": "redsched.scheduler.results",
    "ClaimFilter": "redsched.scheduler.claims.listing",
    "ClassAmounts": "redsched.scheduler.plans.results",
    "DrainState": "redsched.scheduler.results",
    "Effort": "redsched.scheduler.results",
    "EndedPlacement": "redsched.store.codec.results",
    "EventFilter": "redsched.scheduler.observe.events",
    "EventView": "redsched.scheduler.results",
    "Exceeded": "redsched.model",
    "Explanation": "redsched.decide",
    "Finding": "redsched.scheduler.results",
    "HostCheck": "redsched.decide",
    "HostView": "redsched.scheduler.results",
    "IfMatch": "redsched.store.codec.tags",
    "InboxEntry": "redsched.store.codec.results",
    "JournaledClaim": "redsched.store.codec.results",
    "LeavingPlan": "redsched.scheduler.plans.results",
    "Miss": "redsched.decide",
    "Move": "redsched.scheduler.plans.results",
    "Page": "redsched.scheduler.results",
    "PlannedMove": "redsched.scheduler.plans.results",
    "PoolView": "redsched.scheduler.results",
    "Problem": "redsched.scheduler.results",
    "QuotaView": "redsched.scheduler.results",
    "RankedHost": "redsched.decide",
    "Readiness": "redsched.scheduler.results",
    "ReasonCount": "redsched.decide",
    "RebalancePlan": "redsched.scheduler.plans.results",
    "Redundancy": "redsched.scheduler.plans.results",
    "ReportResult": "redsched.scheduler.results",
    "Reset": "redsched.scheduler.results",
    "Room": "redsched.scheduler.plans.results",
    "Scheduler": "redsched.scheduler.scheduler",
    "Selection": "redsched.scheduler.results",
    "Selections": "redsched.scheduler.results",
    "ServerGroupView": "redsched.scheduler.results",
    "SharedPoolView": "redsched.scheduler.results",
    "SlotView": "redsched.scheduler.results",
    "Stats": "redsched.scheduler.results",
    "StatusProblem": "redsched.scheduler.status.results",
    "StatusReport": "redsched.scheduler.status.results",
    "Unplaced": "redsched.scheduler.plans.results",
    "UsageBy": "redsched.scheduler.observe.usage",
    "UsageRow": "redsched.scheduler.results",
    "WithoutDomain": "redsched.scheduler.plans.results",
    "usage_by": "redsched.scheduler.observe.usage",
}
"""The module of each name. Imported on first access: what decides loads NumPy, and most commands decide nothing."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
