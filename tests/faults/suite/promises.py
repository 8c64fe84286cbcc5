"""What an answer promises its caller, and whether the loss of a claim has broken that.

    answered    has taken it up            the promise
    claimed     no                         its host has until `expires_at_ms` of the answer to take it up
    claimed     yes, it is starting        its host has a lease of its own, and renews it as long as it goes on
    active      yes                        it stays until its owner gives it back

So a claim that has expired is no broken promise as such. It is one where it ended before its lease did, and it is a
defect where nothing kept the agent of its host from taking it up: the faults of a round say which agents they held up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.suite import traffic
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.fleet import agent_of
from tests.faults.suite.ledger import Owned
from tests.faults.suite.watcher import Gone
from tests.faults.suite.world import AGENT

HOST_LEASE_MS = int(AGENT["lease_s"] * 1000)
"""The lease of a claim that its host has taken up; the shortest that one can get."""


@dataclass(frozen=True, slots=True)
class Excuses:
    """What the faults of a round may cost: the ends that claims may come to, and the agents that were held up."""

    ends: frozenset[str] = frozenset()
    held_up: frozenset[str] = frozenset()

    @classmethod
    def of(cls, faults: Sequence[Breakage]) -> "Excuses":
        """Return those of faults that were at work together."""
        ends: frozenset[str] = frozenset().union(*(one.may_lose() for one in faults))
        return cls(ends, frozenset().union(*(one.held_up() for one in faults)))


def broken(claim_id: str, owned: Owned, gone: Gone | None, why: str, excuses: Excuses) -> str:
    """Return why the loss of a claim breaks what its owner was told; '' where it does not."""
    if owned.was_active or owned.until == "active":
        return "it was active, and stays until it is given back"
    if "forgotten" in excuses.ends and gone is not None and gone.last.get("host") != owned.host:
        return ""  # the placement that was answered is forgotten: what ended is the one before it
    if why == "expired":
        return _expired(owned, gone, excuses)
    if why in excuses.ends or _fell(claim_id, gone, why, excuses):
        return ""
    return f"no fault of the round may lose a claim as {why}"


def _expired(owned: Owned, gone: Gone | None, excuses: Excuses) -> str:
    if gone is not None and gone.expires_ms is not None:
        # Its host may have taken it up between the two looks, and had a lease of its own from then on.
        earliest_ms = min(gone.expires_ms, gone.seen_ms + HOST_LEASE_MS)
        if gone.gone_ms < earliest_ms:
            return f"it ended {earliest_ms - gone.gone_ms} ms before its lease could run out"
    if owned.expires_ms is not None and owned.answered_ms >= owned.expires_ms:
        return ""  # the answer came after the lease that it speaks of: it promises nothing
    agent = agent_of(gone.last.get("host", owned.host) if gone else owned.host)
    return "" if agent in excuses.held_up else f"no fault of the round held {agent} up"


def _fell(claim_id: str, gone: Gone | None, why: str, excuses: Excuses) -> bool:
    """Whether its lease ran out on a host that was held up, and no other had room; or that of another of its gang."""
    hosts_held_up = {host for host in (gone.tried if gone else ()) if agent_of(host) in excuses.held_up}
    with_others = bool(excuses.held_up) and traffic.stands_with_others(claim_id)
    return why == "failed" and (bool(hosts_held_up) or with_others)
