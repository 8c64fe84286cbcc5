"""Hosts in words: one that is down or lost, and the claims that are there."""

from typing import TYPE_CHECKING

from redsched.cli import formats
from redsched.model import Claim, ClaimStatus, HostCondition, HostStatus

if TYPE_CHECKING:
    from redsched.scheduler import HostView

GONE = (HostCondition.DOWN, HostCondition.LOST)
"""Hosts of which nothing is heard: what the store has of their claims is as old as their last report."""


def host_text(host: "HostView") -> str:
    """Return a host in one word; with the time since when it is down, and what an operator has set besides."""
    if host.condition not in (HostCondition.DOWN, HostCondition.UNATTESTED):
        return host.condition
    besides = "" if host.status is HostStatus.ENABLED else f", {host.status}"
    return f"{_since(host.condition, host.down_since_ms)}{besides}"


def claim_text(claim: Claim) -> str:
    """Return a claim's state; for an active one, whether its work has ended and whether its host is down or lost.

    Also whether it has to leave its host, and waits for another place.
    """
    parts = [str(claim.state)]
    if claim.state is ClaimStatus.ACTIVE and claim.work_ended_at_ms is not None:
        parts = [f"{claim.state} (work ended)"]
    if claim.host_condition in GONE:
        parts.append(f"host {_since(claim.host_condition, claim.host_down_since_ms)}")
    if claim.waits_to_leave:
        parts.append("waits for another place")
    return ", ".join(parts)


def _since(condition: HostCondition, at_ms: int | None) -> str:
    return condition if at_ms is None else f"{condition} {formats.age(at_ms)}"
