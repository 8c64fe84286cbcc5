"""What comes in: bodies and queries, each with the way into the words of `redsched.model`.

selection.py   what is asked for          parts.py    its groups, NUMA, devices, hints, relations
reports.py     what hosts say             declared.py what operators declare
verbs.py       verbs of claims and hosts  queries.py  lists, deletions
sets.py        lists that mean sets       made.py     bodies become the model's words
"""

from redsched.schema.requests.declared import AggregateBody, QuotaBody, ServerGroupBody, SharedPoolBody
from redsched.schema.requests.queries import (
    BulkQuery,
    BulkReleaseQuery,
    BulkRenewQuery,
    ClaimEventsQuery,
    ClaimsQuery,
    EventsQuery,
    ExplainQuery,
    ForgetQuery,
    HostsQuery,
    InboxQuery,
    PageQuery,
    ReleaseQuery,
    UsageQuery,
)
from redsched.schema.requests.reports import HeartbeatBody, HeldClaimBody, ReportBody, ReportPatch
from redsched.schema.requests.selection import SelectionRequest
from redsched.schema.requests.verbs import (
    DrainBody,
    FailBody,
    LostBody,
    MoveBody,
    RenewBody,
    ResizeBody,
    TokenBody,
    UnshelveBody,
)

__all__ = [
    "AggregateBody",
    "BulkQuery",
    "BulkReleaseQuery",
    "BulkRenewQuery",
    "ClaimEventsQuery",
    "ClaimsQuery",
    "DrainBody",
    "EventsQuery",
    "ExplainQuery",
    "FailBody",
    "ForgetQuery",
    "HeartbeatBody",
    "HeldClaimBody",
    "HostsQuery",
    "InboxQuery",
    "LostBody",
    "MoveBody",
    "PageQuery",
    "QuotaBody",
    "ReleaseQuery",
    "RenewBody",
    "ReportBody",
    "ReportPatch",
    "ResizeBody",
    "SelectionRequest",
    "ServerGroupBody",
    "SharedPoolBody",
    "TokenBody",
    "UnshelveBody",
    "UsageQuery",
]
