"""What goes out: the shape of every answer, for the OpenAPI, by subject. `redsched.api.render` builds them."""

from redsched.api.models.answered.claims import ClaimAnswer, ClaimsAnswer, EndingAnswer
from redsched.api.models.answered.declared import (
    AggregateAnswer,
    AggregatesAnswer,
    ServerGroupAnswer,
    ServerGroupsAnswer,
    SharedPoolAnswer,
    SharedPoolsAnswer,
)
from redsched.api.models.answered.hosts import (
    HeartbeatAnswer,
    HostAnswer,
    HostsAnswer,
    InboxAnswer,
    InboxEntryAnswer,
    PoolAnswer,
    ReportAnswer,
    SlotAnswer,
)
from redsched.api.models.answered.problems import (
    FieldError,
    InvalidProblem,
    Miss,
    NoValidHostProblem,
    Problem,
    ReasonCount,
)
from redsched.api.models.answered.quotas import (
    ExceededAnswer,
    QuotaAnswer,
    QuotaProblem,
    QuotasAnswer,
    UsageAnswer,
    UsageRowAnswer,
)
from redsched.api.models.answered.selections import (
    Alternate,
    CheckAnswer,
    ExplanationAnswer,
    HostCheckAnswer,
    SelectionAnswer,
    SelectionsAnswer,
)
from redsched.api.models.answered.service import ChangeAnswer, EventAnswer, EventsAnswer, HealthAnswer, ReadyAnswer

__all__ = [
    "AggregateAnswer",
    "AggregatesAnswer",
    "Alternate",
    "ChangeAnswer",
    "CheckAnswer",
    "ClaimAnswer",
    "ClaimsAnswer",
    "EndingAnswer",
    "EventAnswer",
    "EventsAnswer",
    "ExceededAnswer",
    "ExplanationAnswer",
    "FieldError",
    "HealthAnswer",
    "HeartbeatAnswer",
    "HostAnswer",
    "HostCheckAnswer",
    "HostsAnswer",
    "InboxAnswer",
    "InboxEntryAnswer",
    "InvalidProblem",
    "Miss",
    "NoValidHostProblem",
    "PoolAnswer",
    "Problem",
    "QuotaAnswer",
    "QuotaProblem",
    "QuotasAnswer",
    "ReadyAnswer",
    "ReasonCount",
    "ReportAnswer",
    "SelectionAnswer",
    "SelectionsAnswer",
    "ServerGroupAnswer",
    "ServerGroupsAnswer",
    "SharedPoolAnswer",
    "SharedPoolsAnswer",
    "SlotAnswer",
    "UsageAnswer",
    "UsageRowAnswer",
]
