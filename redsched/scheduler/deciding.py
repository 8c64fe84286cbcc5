"""Deciding where claims go that have a placement already: what a single claim and a whole group have in common."""

from collections.abc import Callable
from typing import TypeVar

from redsched.decide import Explanation
from redsched.decide.left_behind import without_left_behind
from redsched.errors import RedschedError
from redsched.model import Claim, Request
from redsched.scheduler.cells import Cell
from redsched.scheduler.refusal import refusal

T = TypeVar("T")


async def decide_on(cell: Cell, decide: Callable[[], T], caught_up: bool = True) -> tuple[T, tuple[str, int]]:
    """Return a decision with the epoch and seq of the columns decided on, which have caught up unless told not to."""

    def look() -> tuple[T, tuple[str, int]]:
        return decide(), (cell.mirror.epoch, cell.mirror.seq)

    return await cell.caught_up(look) if caught_up else look()


async def refusal_of(cell: Cell, request: Request, *claims: Claim) -> RedschedError:
    """Return why nothing fits a request for other places of these claims."""

    def explain() -> Explanation:
        with without_left_behind(cell.mirror.columns, *claims):
            return cell.decider.explain(request)

    return refusal((cell,), request, [await cell.caught_up(explain)])
