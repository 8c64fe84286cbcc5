"""Back off: how long a scheduler waits before it retries a claim that could not be moved."""

import random

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0


class MoveBackoff:
    """The pauses of one scheduler, by claim. Each is about twice as long as the one before, up to LONGEST_PAUSE_S.

    All times are seconds of this process' monotonic clock. A claim that was not retried within LONGEST_PAUSE_S after
    its pause ended is forgotten, which bounds the table: it has left its host, or its next pause is a short one again.
    """

    def __init__(self) -> None:
        self._by_claim: dict[str, tuple[float, float]] = {}
        """By claim: when the pause ends, and its length."""

    def __len__(self) -> int:
        return len(self._by_claim)

    def is_due(self, claim_id: str, now_s: float) -> bool:
        """Return whether a claim may be retried now."""
        return claim_id not in self._by_claim or self._by_claim[claim_id][0] <= now_s

    def back_off(self, claim_id: str, now_s: float) -> None:
        """Record that a claim could not be moved, and begin its next pause."""
        _, before_s = self._by_claim.get(claim_id, (0.0, FIRST_PAUSE_S / 2))
        pause_s = min(LONGEST_PAUSE_S, 2 * before_s)
        self._by_claim[claim_id] = (now_s + pause_s * random.uniform(0.8, 1.2), pause_s)

    def forget(self, claim_id: str) -> None:
        """Forget a claim that was moved."""
        self._by_claim.pop(claim_id, None)

    def prune(self, now_s: float) -> None:
        """Forget the claims whose pauses ended long ago."""
        long_ago_s = now_s - LONGEST_PAUSE_S
        for claim_id in [one for one, (until_s, _) in self._by_claim.items() if until_s < long_ago_s]:
            del self._by_claim[claim_id]

    def clear(self) -> None:
        """Forget all claims."""
        self._by_claim.clear()
