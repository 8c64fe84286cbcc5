"""Why claims that were to become active did not: one entry for each host that did not confirm one."""

from collections.abc import Sequence
from dataclasses import dataclass

from redsched.model.claims import one_line

NOT_CONFIRMED = "not-confirmed"
"""The host had not confirmed it when the wait was over."""
UNKNOWN = "unknown"
"""The claim is not known any more: the store has lost it."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """What became of one placement. `at_ms` is the store's time of the change, or when a scheduler saw it (Unix, ms).

    `kind`: why the placement ended, as events have it (`failed`, `expired`, `released`), NOT_CONFIRMED or UNKNOWN.
    `reason`: what was seen, in words, possibly on several lines; '' where nothing was said.
    """

    claim_id: str
    host: str
    at_ms: int
    kind: str
    reason: str

    def __str__(self) -> str:
        if self.kind == NOT_CONFIRMED:
            return f"not confirmed by {self.host} {self.reason}"
        if self.kind == UNKNOWN:
            return self.reason
        seen = one_line(self.reason)
        return f"{self.kind} on {self.host}" + (f" ({seen})" if seen else "")


def sentence(attempts: Sequence[FailedAttempt]) -> str:
    """Return what became of the first claim, and of how many others the same call says so."""
    claim_ids = tuple(dict.fromkeys(one.claim_id for one in attempts))
    first = "; ".join(str(one) for one in attempts if one.claim_id == claim_ids[0])
    more = f", and {len(claim_ids) - 1} more" if len(claim_ids) > 1 else ""
    return f"claim {claim_ids[0]}: {first}{more}"
