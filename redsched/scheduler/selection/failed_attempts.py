"""Failed attempts to activate claims: one entry for each host that did not confirm a claim."""

from collections.abc import Sequence
from dataclasses import dataclass

from redsched.model.claims import one_line

NOT_CONFIRMED = "not-confirmed"
"""The host had not confirmed the claim when the wait ended."""
UNKNOWN = "unknown"
"""The claim is no longer known: the store has lost it."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """The failure of one placement. `at_ms` is the store's time of the change, or when a scheduler saw it (Unix ms).

    `kind` is the kind of the event that ended the placement (`failed`, `expired`, `released`), NOT_CONFIRMED or
    UNKNOWN. `reason` is a description, possibly of several lines; '' if none was given.
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
    """Describe the attempts of the first claim in a sentence, with the number of further claims."""
    claim_ids = tuple(dict.fromkeys(one.claim_id for one in attempts))
    first = "; ".join(str(one) for one in attempts if one.claim_id == claim_ids[0])
    more = f", and {len(claim_ids) - 1} more" if len(claim_ids) > 1 else ""
    return f"claim {claim_ids[0]}: {first}{more}"
