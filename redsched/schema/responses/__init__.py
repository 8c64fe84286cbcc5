"""Responses: the models that describe and build them, by subject.

They are imported when the first one is used, because the command line needs them only for `--json`.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from redsched.schema.responses.agents import (
        AgentAnswer,
        AttestedAnswer,
        ClaimIdsAnswer,
        DevicesAnswer,
        HeartbeatsAnswer,
        HeldClaimsAnswer,
        InboxesAnswer,
        OutcomeAnswer,
        ReportedAnswer,
        TextNamesAnswer,
        TextsAnswer,
    )
    from redsched.schema.responses.claims import (
        AcceptedClaimAnswer,
        BulkAnswer,
        BulkClaimAnswer,
        ClaimAnswer,
        ClaimsAnswer,
        EndingAnswer,
        ReasonAnswer,
    )
    from redsched.schema.responses.declared import (
        AggregateAnswer,
        AggregatesAnswer,
        ServerGroupAnswer,
        ServerGroupsAnswer,
        SharedPoolAnswer,
        SharedPoolsAnswer,
    )
    from redsched.schema.responses.hosts import (
        AcceptedAnswer,
        DrainAnswer,
        HeartbeatAnswer,
        HostAnswer,
        HostsAnswer,
        InboxAnswer,
        InboxEntryAnswer,
        PoolAnswer,
        ReportAnswer,
        SlotAnswer,
        UnmovableAnswer,
    )
    from redsched.schema.responses.problems import (
        FailedAttempt,
        FieldError,
        InvalidProblem,
        Miss,
        NotConfirmedProblem,
        NoValidHostProblem,
        Problem,
    )
    from redsched.schema.responses.quotas import (
        ExceededAnswer,
        QuotaAnswer,
        QuotaProblem,
        QuotasAnswer,
        UsageAnswer,
        UsageRowAnswer,
    )
    from redsched.schema.responses.selections import (
        Alternate,
        CheckAnswer,
        ExplanationAnswer,
        HostCheckAnswer,
        RankedHostAnswer,
        SelectionAnswer,
        SelectionsAnswer,
    )
    from redsched.schema.responses.service import (
        AboutAnswer,
        ChangeAnswer,
        EventAnswer,
        EventsAnswer,
        HealthAnswer,
        ReadyAnswer,
    )

__all__ = [
    "AboutAnswer",
    "AcceptedAnswer",
    "AcceptedClaimAnswer",
    "AgentAnswer",
    "AggregateAnswer",
    "AggregatesAnswer",
    "Alternate",
    "AttestedAnswer",
    "BulkAnswer",
    "BulkClaimAnswer",
    "ChangeAnswer",
    "CheckAnswer",
    "ClaimAnswer",
    "ClaimIdsAnswer",
    "ClaimsAnswer",
    "DevicesAnswer",
    "DrainAnswer",
    "EndingAnswer",
    "EventAnswer",
    "EventsAnswer",
    "ExceededAnswer",
    "ExplanationAnswer",
    "FailedAttempt",
    "FieldError",
    "HealthAnswer",
    "HeartbeatAnswer",
    "HeartbeatsAnswer",
    "HeldClaimsAnswer",
    "HostAnswer",
    "HostCheckAnswer",
    "HostsAnswer",
    "InboxAnswer",
    "InboxEntryAnswer",
    "InboxesAnswer",
    "InvalidProblem",
    "Miss",
    "NoValidHostProblem",
    "NotConfirmedProblem",
    "OutcomeAnswer",
    "PoolAnswer",
    "Problem",
    "QuotaAnswer",
    "QuotaProblem",
    "QuotasAnswer",
    "RankedHostAnswer",
    "ReadyAnswer",
    "ReasonAnswer",
    "ReportAnswer",
    "ReportedAnswer",
    "SelectionAnswer",
    "SelectionsAnswer",
    "ServerGroupAnswer",
    "ServerGroupsAnswer",
    "SharedPoolAnswer",
    "SharedPoolsAnswer",
    "SlotAnswer",
    "TextNamesAnswer",
    "TextsAnswer",
    "UnmovableAnswer",
    "UsageAnswer",
    "UsageRowAnswer",
]


def __getattr__(name: str) -> Any:
    """Return a model by its name, from the module of its subject."""
    for one in iter_modules(__path__) if name in __all__ else ():
        module = import_module(f"{__name__}.{one.name}")
        found = getattr(module, name, None)
        if getattr(found, "__module__", "") == module.__name__:  # defined there, and not imported from elsewhere
            return globals().setdefault(name, found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
