"""One request on its way through the selector, and what it has taken so far."""

import secrets
import time

from redsched.decide import Explanation
from redsched.model import Request
from redsched.scheduler.cells import Cell
from redsched.scheduler.results import Effort


class SchedulingAttempt:
    """A request, what was found out about it, and the effort. `anew` begins another try of it."""

    __slots__ = (
        "asked",
        "call_id",
        "calls",
        "catch_up",
        "decide_s",
        "decided_on",
        "home",
        "left",
        "looked_for",
        "pinned",
        "request",
        "seen",
        "sent",
        "started",
    )

    def __init__(self, request: Request) -> None:
        self.request = request
        # Until active, so that what this call leaves behind can be told from what the same ids were sent for again.
        self.call_id = secrets.token_hex(4) if request.until == "active" and request.claim_ids else ""
        self.calls = 0
        self.decide_s = 0.0
        self.started = time.perf_counter()
        self.anew()

    def anew(self) -> None:
        """Forget what was found out: it may have changed."""
        self.asked = self.request
        """The request as it is decided on: the claims that its hints name are hosts in it."""
        # A dry run shows what a later request would see: nothing that was answered may be missing.
        self.catch_up = not self.request.claim
        """Whether to decide only on columns that have caught up: after FULL, and before a refusal."""
        self.seen: dict[str, tuple[Explanation, bool]] = {}
        """Why nothing fitted, by cell, and whether it was settled, at the instant at which that was decided."""
        self.decided_on: dict[str, tuple[str, int]] = {}
        """Epoch and seq of the columns decided on, by cell: by the time of the claim they may have moved on."""
        self.home: Cell | None = None
        """The cell that the caller's own ids are bound to, where there are several."""
        self.looked_for = False
        """Whether the columns have caught up since something that the request names was not found in them."""
        self.pinned: Cell | None = None
        """The cell that a server group of the request is pinned to, where there are several."""
        self.left: set[str] = set()
        """Cells that they were bound to before, and that had no room."""
        self.sent: tuple[str, ...] = ()
        """Ids of the claim call that is under way."""

    def effort(self, outcome: str) -> Effort:
        """What it has taken, and how it ended."""
        retries = max(0, self.calls - 1)
        return Effort(outcome, self.calls, retries, self.decide_s, time.perf_counter() - self.started)
