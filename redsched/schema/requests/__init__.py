"""Requests: bodies and queries, and their conversion to the types of `redsched.model`.

selection.py   selections and explanations  constraints.py  their groups, NUMA, devices, hints, relations
reports.py     reports of hosts             declared.py     objects that operators declare
verbs.py       verbs of claims and hosts    queries.py      lists and deletions
lists.py       lists that mean sets         converting.py   conversion of bodies to the model
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
