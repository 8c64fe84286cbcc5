"""What the stages of a selection hand on, and how one pass through them ends."""

from dataclasses import dataclass

from redsched.decide import Decision
from redsched.errors import RedschedError
from redsched.model.record import record
from redsched.scheduler.cells import Cell
from redsched.scheduler.results import Selections
from redsched.store.codec.results import ClaimAnswer


@record
class Proposal:
    """A decision in one cell, with the epoch and seq of the columns that it was made on: they may move on meanwhile."""

    cell: Cell
    decision: Decision
    epoch: str
    seq: int

    @property
    def rank(self) -> tuple[int, float]:
        """Higher is better: more places, then the better best host."""
        return len(self.decision.places), self.decision.score


@record
class ClaimReply:
    """What the claim script answered, and the ids that it was sent with."""

    ids: tuple[str, ...]
    answer: ClaimAnswer


@dataclass(frozen=True, slots=True)
class Retry:
    """Go through the stages again: what was decided on is not what the store has."""


@dataclass(frozen=True, slots=True)
class Done:
    """The request has its answer."""

    selections: Selections


@dataclass(frozen=True, slots=True)
class Refuse:
    """The request cannot be met: nothing fits, the quota is used up, or it names something that is not there."""

    error: RedschedError


Step = Retry | Done | Refuse
