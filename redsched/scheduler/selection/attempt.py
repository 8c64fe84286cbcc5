"""The state of one request in the pipeline, what its stages pass on, and the results of one pass through them."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from redsched.decide.gains import Gains
from redsched.decide.result import Decision
from redsched.decide.work_limit import WorkLimit
from redsched.model import Request
from redsched.model.record import record
from redsched.model.records.problems import UnavailableFacts
from redsched.model.records.selections import Selections
from redsched.scheduler.cells import Cell
from redsched.scheduler.results import ClaimCost, Effort
from redsched.scheduler.selection.refusal import FoundRefusal, PendingRefusal
from redsched.store.codec.replies import ClaimReply

MAX_SEARCHES = 4
"""The most hosts whose pools are first searched in vain before other tasks run."""


class SchedulingAttempt:
    """A request, what is known about it, and its cost so far. `restart` prepares another run of the pipeline."""

    __slots__ = (
        "call_id",
        "calls",
        "catch_up",
        "claims",
        "decide_s",
        "full_cells",
        "gains",
        "home",
        "is_hard",
        "is_resolved",
        "limit",
        "max_searches",
        "new_limit",
        "own_only",
        "owner",
        "pinned",
        "refusals",
        "request",
        "reservation",
        "resolved",
        "sent",
        "started",
    )

    def __init__(
        self, request: Request, new_limit: Callable[[], WorkLimit], owner: str = "", own_only: bool = False
    ) -> None:
        self.request = request
        self.new_limit = new_limit
        self.owner, self.own_only = owner or request.owner, own_only
        """Who owns the claims, and whether earlier claims with the request's ids are refused if others own them."""
        self.is_hard = False
        """Whether deciding on it takes too long for this process, so that its planner decides."""
        # For until=active: distinguishes claims that this call returned from those that a repeated call returned.
        self.call_id = secrets.token_hex(4) if self.waits_until_active and request.claim_ids else ""
        self.calls = 0
        self.claims: list[ClaimCost] = []
        self.decide_s = 0.0
        self.reservation = ""
        """The id under which a host is reserved for it while it waits; '' if none are."""
        self.started = time.perf_counter()
        self.restart()

    @property
    def waits_until_active(self) -> bool:
        """Whether the caller gets its answer only once the hosts have confirmed."""
        return self.request.until == "active" and self.request.claim

    @property
    def waits_for_room(self) -> bool:
        """Whether the request waits in the queue if nothing fits."""
        return bool(self.request.queue_timeout_s) and self.request.claim

    def restart(self) -> None:
        """Reset what is known about the request: it may have changed."""
        self.resolved = self.request
        """The request to decide on: the claims in its hints are replaced by their hosts."""
        self.is_resolved = False
        self.limit = self.new_limit()
        """What deciding may still cost until the next restart: a request may wait, and be tried again, for long."""
        # A dry run shows what a later request would get, so it must reflect everything acknowledged so far.
        self.catch_up = not self.request.claim
        """Whether to catch up with the feed before deciding: after FULL, and before a refusal."""
        self.max_searches = MAX_SEARCHES
        """The most searches in vain of a pass. Doubled after each, or hosts that change could delay it for ever."""
        self.refusals: dict[str, PendingRefusal | FoundRefusal] = {}
        """By cell, why nothing fitted."""
        self.gains: dict[str, Gains] = {}
        """By cell, what tells whether room may have come free while the request waits."""
        self.home: Cell | None = None
        """The cell that the caller's own ids are bound to, if there are several cells."""
        self.pinned: Cell | None = None
        """The cell that a server group of the request is pinned to, if there are several cells."""
        self.full_cells: set[str] = set()
        """The cells without room to which the ids were bound before."""
        self.sent: tuple[str, ...] = ()
        """The ids of the claim call in progress."""

    def known_ids(self) -> UnavailableFacts:
        """Return the ids by which the caller can learn the outcome: its own, or those made for the call."""
        return UnavailableFacts(claim_ids=tuple(self.sent or self.request.claim_ids))

    def effort(self, outcome: str, reason: str = "") -> Effort:
        """Return the cost of the selection, with its outcome and the reason of a refusal."""
        retries = max(0, self.calls - 1)
        seconds = time.perf_counter() - self.started
        return Effort(outcome, self.calls, retries, self.decide_s, seconds, tuple(self.claims), reason)


@record
class Proposal:
    """A decision in one cell, with the epoch and seq of the columns on which it is based: the columns may advance."""

    cell: Cell
    decision: Decision
    epoch: str
    seq: int

    @property
    def rank(self) -> tuple[int, float]:
        """The sort key; higher is better: more places, then the higher score of the best host."""
        return len(self.decision.places), self.decision.score


@record
class CallAndReply:
    """The claim script's answer, and the ids it was called with."""

    ids: tuple[str, ...]
    answer: ClaimReply


@dataclass(frozen=True, slots=True)
class Retry:
    """Run the stages again, because the decision was based on columns that differ from the store."""


@dataclass(frozen=True, slots=True)
class Done:
    """The request is answered."""

    selections: Selections


Step = Retry | Done
"""The result of one pass through the stages. A refusal is an error."""
