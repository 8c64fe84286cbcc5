"""redsched: a shared-state scheduler on Redis. The library's public names are here; docs/library.md shows their use."""

from redsched.cache.columns import Columns
from redsched.decide.rules import Rule
from redsched.decide.weighers import Weigher
from redsched.errors import (
    ClaimIdReused,
    ClaimState,
    InvalidRequest,
    NoValidHost,
    OtherAgent,
    OutcomeUnknown,
    OwnCodeFailed,
    RedschedError,
    Settling,
    StaleToken,
    StoreUnavailable,
    Unavailable,
    Unknown,
)
from redsched.model import AgentStamp, Claim, ClaimStatus, HostReport, HostStatus, Inventory, Request, Token
from redsched.scheduler import Scheduler
from redsched.settings import Settings

__all__ = [
    "AgentStamp",
    "Claim",
    "ClaimIdReused",
    "ClaimState",
    "ClaimStatus",
    "Columns",
    "HostReport",
    "HostStatus",
    "InvalidRequest",
    "Inventory",
    "NoValidHost",
    "OtherAgent",
    "OutcomeUnknown",
    "OwnCodeFailed",
    "RedschedError",
    "Request",
    "Rule",
    "Scheduler",
    "Settings",
    "Settling",
    "StaleToken",
    "StoreUnavailable",
    "Token",
    "Unavailable",
    "Unknown",
    "Weigher",
]
