"""The words of the design as plain data: inventories, reports, requests, claims, tokens, and what operators declare.

Frozen, validated when made, and free of I/O. What travels over HTTP has pydantic models in `redsched.api`; what lies in
Redis is read and written in `redsched.store`; both turn into these.
"""

from redsched.model.candidate import Candidate, ClaimRule, HostLimit, RuleKind
from redsched.model.claims import (
    HELD,
    LEASED,
    OVER,
    Amounts,
    Claim,
    ClaimStatus,
    EndReason,
    ListedState,
    OnExit,
    Placement,
    Reason,
    Token,
)
from redsched.model.constraints import (
    CpuPolicy,
    Group,
    Hints,
    Numa,
    NumaAffinity,
    NumaCell,
    PciDevices,
    Relation,
    RelationType,
    Spread,
)
from redsched.model.declared import CLAIMS, Aggregate, Exceeded, GroupPolicy, Quota, ServerGroup, SharedPool
from redsched.model.hosts import (
    MAX_LABELS,
    MAX_RATIO,
    MAX_TRAITS,
    NUMA_NODE,
    AgentStamp,
    AtDeadline,
    HostReport,
    HostStatus,
    Inventory,
    ListedStatus,
    Pool,
)
from redsched.model.limits import MAX_CLASSES, MAX_LEASE_S
from redsched.model.one_of import OneOf, accepts, values_of
from redsched.model.request import GangMember, Request
from redsched.model.request_validation import MAX_ALTERNATES, MAX_ATTEMPTS, MAX_COUNT, MAX_WAIT_S

__all__ = [
    "CLAIMS",
    "HELD",
    "LEASED",
    "MAX_ALTERNATES",
    "MAX_ATTEMPTS",
    "MAX_CLASSES",
    "MAX_COUNT",
    "MAX_LABELS",
    "MAX_LEASE_S",
    "MAX_RATIO",
    "MAX_TRAITS",
    "MAX_WAIT_S",
    "NUMA_NODE",
    "OVER",
    "AgentStamp",
    "Aggregate",
    "Amounts",
    "AtDeadline",
    "Candidate",
    "Claim",
    "ClaimRule",
    "ClaimStatus",
    "CpuPolicy",
    "EndReason",
    "Exceeded",
    "GangMember",
    "Group",
    "GroupPolicy",
    "Hints",
    "HostLimit",
    "HostReport",
    "HostStatus",
    "Inventory",
    "ListedState",
    "ListedStatus",
    "Numa",
    "NumaAffinity",
    "NumaCell",
    "OnExit",
    "OneOf",
    "PciDevices",
    "Placement",
    "Pool",
    "Quota",
    "Reason",
    "Relation",
    "RelationType",
    "Request",
    "RuleKind",
    "ServerGroup",
    "SharedPool",
    "Spread",
    "Token",
    "accepts",
    "values_of",
]
