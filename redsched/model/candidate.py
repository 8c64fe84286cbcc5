"""What a decision proposes and the claim script checks: candidates, and the rules and limits that hold for them."""

from enum import StrEnum

from redsched.model.claims import Amounts
from redsched.model.record import record


@record
class Candidate:
    """A host and the exact amounts per slot to take: from it, and from the shared pools that it draws on."""

    host: str
    amounts: Amounts


class RuleKind(StrEnum):
    """What the claim script holds places to, that no race may break."""

    APART = "apart"
    """At most `most` in one domain."""
    TOGETHER = "together"
    """All in one domain."""
    SKEW = "skew"
    """In no domain more than `most` above the emptiest of `domains`."""


@record
class ClaimRule:
    """A rule over some `members` of the call (their numbers, from 0), by host, zone or label (`by`).

    Counted are the members of server group `group` and those of this call; without a group only the latter.
    """

    kind: RuleKind
    by: str
    members: tuple[int, ...]
    group: str = ""
    most: int = 1
    domains: tuple[str, ...] = ()


@record
class HostLimit:
    """How many claims a host may have, and how many of them not active yet; None: any number."""

    claims: int | None = None
    starting: int | None = None
