"""Requests: bodies and queries that are no dataclass of `redsched.model`.

reports.py     reports of hosts             declared.py     shared pools
verbs.py       verbs of claims and hosts    queries.py      lists and deletions

Selections, aggregates, server groups and quotas are read straight into the model (`redsched.schema.parsing`).
"""

from redsched.schema.requests.declared import SharedPoolBody
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
    "ReleaseQuery",
    "RenewBody",
    "ReportBody",
    "ReportPatch",
    "ResizeBody",
    "SharedPoolBody",
    "TokenBody",
    "UnshelveBody",
    "UsageQuery",
]
