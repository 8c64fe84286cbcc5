"""What an answer promises its caller, and whether the loss of a claim breaks that promise.

    answered    has accepted it            the promise
    claimed     no                         its host has until `expires_at_ms` of the answer to accept it
    claimed     yes, it is starting        its host has a lease of its own, and renews it as long as the start takes
    active      yes                        it stays until its owner releases it

So an expired claim breaks no promise as such. It does if it ended before its lease did. It is a defect if no fault
delayed the agent of its host: the faults of a round name the agents that they delayed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.suite.callers import traffic
from tests.faults.suite.checks.ledger import Owned
from tests.faults.suite.checks.watcher import Gone
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.fleet import agent_of
from tests.faults.suite.world import AGENT

HOST_LEASE_MS = int(AGENT["lease_s"] * 1000)
"""The lease of a claim that its host has accepted; the shortest possible one."""


@dataclass(frozen=True, slots=True)
class Excuses:
    """The possible damage of a round's faults: the ends that claims may have, and the agents that were delayed."""

    ends: frozenset[str] = frozenset()
    held_up: frozenset[str] = frozenset()

    @classmethod
    def of(cls, faults: Sequence[Breakage]) -> "Excuses":
        """Return the damage of faults that were active together."""
        ends: frozenset[str] = frozenset().union(*(one.may_lose() for one in faults))
        return cls(ends, frozenset().union(*(one.held_up() for one in faults)))


def broken(claim_id: str, owned: Owned, gone: Gone | None, why: str, excuses: Excuses) -> str:
    """Return why the loss of a claim breaks the promise to its owner; '' if it does not."""
    if owned.was_active or owned.until == "active":
        return "it was active, and stays until it is given back"
    if "forgotten" in excuses.ends and gone is not None and gone.last.get("host") != owned.host:
        return ""  # the answered placement is forgotten: the one that ended precedes it
    if why == "expired":
        return _expired(owned, gone, excuses)
    if why in excuses.ends or _fell(claim_id, gone, why, excuses) or _lost_its_reason(claim_id, owned, why, excuses):
        return ""
    return f"no fault of the round may lose a claim as {why}"


def _expired(owned: Owned, gone: Gone | None, excuses: Excuses) -> str:
    if gone is not None and gone.expires_ms is not None:
        # Its host may have accepted it between the two reads, and had a lease of its own from then on.
        earliest_ms = min(gone.expires_ms, gone.seen_ms + HOST_LEASE_MS)
        if gone.gone_ms < earliest_ms:
            return f"it ended {earliest_ms - gone.gone_ms} ms before its lease could run out"
    if owned.expires_ms is not None and owned.answered_ms >= owned.expires_ms:
        return ""  # the answer arrived after the lease that it names had expired: it promises nothing
    agent = agent_of(gone.last.get("host", owned.host) if gone else owned.host)
    return "" if agent in excuses.held_up else f"no fault of the round held {agent} up"


def _fell(claim_id: str, gone: Gone | None, why: str, excuses: Excuses) -> bool:
    """Return whether its lease expired on a delayed host, and no other had room; or that of another gang member."""
    hosts_held_up = {host for host in (gone.tried if gone else ()) if agent_of(host) in excuses.held_up}
    with_others = bool(excuses.held_up) and traffic.stands_with_others(claim_id)
    return why == "failed" and (bool(hosts_held_up) or with_others)


def _lost_its_reason(claim_id: str, owned: Owned, why: str, excuses: Excuses) -> bool:
    """Return whether it expired on a delayed host, or failed with its gang, and the store has forgotten that.

    The host was asked to end it without a reason, so it cannot inform a wiped store.
    """
    held_up = agent_of(owned.host) in excuses.held_up
    with_others = bool(excuses.held_up) and traffic.stands_with_others(claim_id)
    return why == "void" and "forgotten" in excuses.ends and (held_up or with_others)
