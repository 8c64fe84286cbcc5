"""What a decision proposes and the claim script checks: candidates, with the rules and limits for them."""

from enum import StrEnum

from redsched.model.claims import Amounts
from redsched.model.record import record


@record
class Candidate:
    """A host, and the exact amounts by slot to take from it and from the shared pools that it uses."""

    host: str
    amounts: Amounts


class RuleKind(StrEnum):
    """Rules over several places that the claim script enforces, so that no race can break them."""

    APART = "apart"
    """At most `most` places in one domain."""
    TOGETHER = "together"
    """All places in one domain."""
    SKEW = "skew"
    """No domain has more than `most` places above the emptiest of `domains`."""


@record
class ClaimRule:
    """A rule over some places of a call, by host, zone or label (`by`).

    `members` are the numbers of the places in the call, from 0. Counts the members of server group `group` and the
    places of this call; without a group only the latter.
    """

    kind: RuleKind
    by: str
    members: tuple[int, ...]
    group: str = ""
    most: int = 1
    domains: tuple[str, ...] = ()


@record
class HostLimit:
    """How many claims a host may have, and how many of them may be starting (not active yet). None means unlimited."""

    claims: int | None = None
    starting: int | None = None
