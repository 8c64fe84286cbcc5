"""redsched: a shared-state scheduler on Redis. The library's public names are here; docs/library.md shows their use."""

from redsched.errors import (
    ClaimIdReused,
    ClaimState,
    InvalidRequest,
    NoValidHost,
    OtherAgent,
    OutcomeUnknown,
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
    "HostReport",
    "HostStatus",
    "InvalidRequest",
    "Inventory",
    "NoValidHost",
    "OtherAgent",
    "OutcomeUnknown",
    "RedschedError",
    "Request",
    "Scheduler",
    "Settings",
    "Settling",
    "StaleToken",
    "StoreUnavailable",
    "Token",
    "Unavailable",
    "Unknown",
]
