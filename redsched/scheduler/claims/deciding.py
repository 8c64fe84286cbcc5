"""Decide on new places for claims that already have one: what single claims and whole groups have in common."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from redsched.cache.columns import Columns
from redsched.decide.lost_members import ignoring_lost_members
from redsched.decide.recovery import before_reservations
from redsched.decide.work_limit import TooMuchWork
from redsched.errors import RedschedError
from redsched.model import Claim, Request
from redsched.model.records.explanations import Explanation
from redsched.scheduler.cells import Cell, wait_text
from redsched.scheduler.decide_apart.limits import background_limit, too_hard
from redsched.scheduler.selection.refusal import PendingRefusal, refusal

T = TypeVar("T")


async def decide_on(
    cell: Cell, request: Request, decide: Callable[[], T], read_at_head: bool = True
) -> tuple[T, tuple[str, int]]:
    """Return a decision with the epoch and seq of the columns it is based on.

    The columns are brought up to date first, unless `read_at_head` is False. Raises TooHard beyond the limit of work in
    the background.
    """

    def look() -> tuple[T, tuple[str, int]]:
        with background_limit().working():
            return decide(), (cell.updater.epoch, cell.updater.seq)

    try:
        return await cell.read_at_head(look) if read_at_head else look()
    except TooMuchWork as cut:
        raise too_hard(request, len(cell.updater.columns), cut) from None


@contextmanager
def as_if_left(columns: Columns, claims: Sequence[Claim]) -> Iterator[None]:
    """Apply the rules of server groups, inside the context, as if these claims had left their hosts.

    If all of them are recovered, what hosts keep for requests is free.
    """
    by_group: dict[str, list[Claim]] = {}
    for claim in claims:
        by_group.setdefault(claim.server_group, []).append(claim)
    with ExitStack() as stack:
        for alike in by_group.values():
            stack.enter_context(ignoring_lost_members(columns, *alike))
        stack.enter_context(before_reservations(columns, *claims))
        yield


async def refusal_of(cell: Cell, request: Request, *claims: Claim) -> RedschedError:
    """Return the error that explains why these claims have no other place."""

    def explain() -> tuple[Explanation, bool]:
        with as_if_left(cell.updater.columns, claims):
            return PendingRefusal(cell, request, background_limit()).found_at_once(), cell.updater.settled

    explanation, settled = await cell.read_at_head(explain)
    return refusal(settled, request, [explanation], waits=wait_text(cell.name, cell.updater.clock))
