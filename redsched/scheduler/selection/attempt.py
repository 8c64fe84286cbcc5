"""One request on its way through the pipeline, and what it has taken so far."""

import secrets
import time

from redsched.decide import Explanation
from redsched.model import Request
from redsched.scheduler.cells import Cell
from redsched.scheduler.results import Effort


class SchedulingAttempt:
    """A request, what was found out about it, and the effort. `restart` begins another try of it."""

    __slots__ = (
        "call_id",
        "calls",
        "catch_up",
        "decide_s",
        "explanations",
        "full_cells",
        "home",
        "is_resolved",
        "pinned",
        "request",
        "resolved",
        "sent",
        "started",
    )

    def __init__(self, request: Request) -> None:
        self.request = request
        # Until active, so that what this call leaves behind can be told from what the same ids were sent for again.
        self.call_id = secrets.token_hex(4) if self.waits_until_active and request.claim_ids else ""
        self.calls = 0
        self.decide_s = 0.0
        self.started = time.perf_counter()
        self.restart()

    @property
    def waits_until_active(self) -> bool:
        """Whether the answer is given only once the hosts have confirmed."""
        return self.request.until == "active" and self.request.claim

    @property
    def waits_for_room(self) -> bool:
        """Whether a request that nothing fits waits in line."""
        return bool(self.request.queue_timeout_s) and self.request.claim

    def restart(self) -> None:
        """Forget what was found out: it may have changed."""
        self.resolved = self.request
        """The request as it is decided on: the claims that its hints name are hosts in it."""
        self.is_resolved = False
        # A dry run shows what a later request would see: nothing that was answered may be missing.
        self.catch_up = not self.request.claim
        """Whether to decide only on columns that have caught up: after FULL, and before a refusal."""
        self.explanations: dict[str, Explanation] = {}
        """Why nothing fitted, by cell, at the instant at which that was decided."""
        self.home: Cell | None = None
        """The cell that the caller's own ids are bound to, where there are several."""
        self.pinned: Cell | None = None
        """The cell that a server group of the request is pinned to, where there are several."""
        self.full_cells: set[str] = set()
        """Cells that the ids were bound to before, and that had no room."""
        self.sent: tuple[str, ...] = ()
        """Ids of the claim call that is under way."""

    def known_ids(self) -> dict[str, list[str]]:
        """Return what the caller needs to learn the outcome: its own ids, or those that were made for the call."""
        return {"claim_ids": list(self.sent or self.request.claim_ids)}

    def effort(self, outcome: str) -> Effort:
        """Return what it has taken, and how it ended."""
        retries = max(0, self.calls - 1)
        return Effort(outcome, self.calls, retries, self.decide_s, time.perf_counter() - self.started)
