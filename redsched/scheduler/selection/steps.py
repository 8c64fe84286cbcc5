"""Values passed between the stages of a selection, and the results of one pass through them."""

from dataclasses import dataclass

from redsched.decide import Decision
from redsched.errors import RedschedError
from redsched.model.record import record
from redsched.model.records.selections import Selections
from redsched.scheduler.cells import Cell
from redsched.store.codec.results import ClaimAnswer


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
class ClaimReply:
    """The claim script's answer, and the ids it was called with."""

    ids: tuple[str, ...]
    answer: ClaimAnswer


@dataclass(frozen=True, slots=True)
class Retry:
    """Run the stages again, because the decision was based on columns that differ from the store."""


@dataclass(frozen=True, slots=True)
class Done:
    """The request is answered."""

    selections: Selections


@dataclass(frozen=True, slots=True)
class Refuse:
    """The request cannot be met: nothing fits, the quota is used up, or it names something unknown."""

    error: RedschedError


Step = Retry | Done | Refuse
