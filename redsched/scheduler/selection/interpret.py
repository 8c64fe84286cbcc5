"""Interpret the claim script's reply: the selection is done, or the request is decided again on newer columns."""

from collections.abc import Mapping, Sequence

from redsched.errors import OutcomeUnknown, Settling, StoreUnavailable
from redsched.model import Claim, Request
from redsched.model.records.problems import UnavailableFacts
from redsched.scheduler.cells import Cell, Cells, wait_text
from redsched.scheduler.selection.attempt import CallAndReply, Done, Proposal, Retry, SchedulingAttempt, Step
from redsched.scheduler.selection.claim_call import from_existing, from_reply
from redsched.scheduler.selection.idempotency import existing_outcome
from redsched.store.codec.outcomes import Outcome

_LOST = (Outcome.ALREADY_DONE, Outcome.WRONG_EPOCH, Outcome.CONFLICT)
"""Outcomes after which the store may have lost claims with these ids that a host holds and may still restore."""


async def interpret(cells: Cells, attempt: SchedulingAttempt, proposal: Proposal, reply: CallAndReply) -> Step:
    """Return Done with the selections of the ids, or Retry. Raises Settling, ClaimIdReused, ClaimState, Unavailable."""
    request, cell, answer = attempt.request, proposal.cell, reply.answer
    if answer.outcome is Outcome.OK:
        return Done(from_reply(request, cell, proposal.decision, reply.ids, answer))
    if answer.outcome is Outcome.ALREADY_DONE:
        claims = await _read(cell, reply.ids)
        if len(claims) == len(reply.ids):
            return Done(from_existing(request, cell, reply.ids, claims))
    attempt.sent = ()
    if answer.outcome in _LOST:
        abandon(request, cell, reply.ids)
    if answer.outcome in (Outcome.ENDED, Outcome.CONFLICT):
        return await _known_before(cells, attempt)
    if answer.outcome is Outcome.SETTLING:
        raise _settling(request, cell)
    return await _retry_on_later_columns(cell, attempt, reply)


def abandon(request: Request, cell: Cell, ids: tuple[str, ...]) -> None:
    """Have any claims with ids generated for the request released later. A caller's own ids may be sent again."""
    if not request.claim_ids:
        cell.released.abandon(ids)


async def _known_before(cells: Cells, attempt: SchedulingAttempt) -> Step:
    found = await existing_outcome(attempt, cells)
    if found is not None:
        return Done(found)
    attempt.catch_up = True  # the store has lost the outcome in the meantime, so the ids are free again
    return Retry()


async def _retry_on_later_columns(cell: Cell, attempt: SchedulingAttempt, reply: CallAndReply) -> Retry:
    """Return Retry after FULL, WRONG_EPOCH, EXPIRED, STALE_VIEW, or UNKNOWN (a group or pool was deleted).

    The decision was based on columns that differ from the store. Only newer columns can justify a refusal, and only
    they are sure to avoid the same host, because the reply does not contain every change (the host may have shrunk or
    been disabled).
    """
    await cell.mark_down(reply.answer)
    attempt.catch_up = True
    return Retry()


async def _read(cell: Cell, ids: Sequence[str]) -> Mapping[str, Claim]:
    """Read the claims of a call that was executed. Raises OutcomeUnknown if they cannot be read."""
    try:
        return await cell.store.claims.read(ids)
    except StoreUnavailable as error:
        said = "the claim was made, but could not be read"
        raise OutcomeUnknown(f"{said}: {error.detail}", public=f"{said}: {error.public}") from error


def _settling(request: Request, cell: Cell) -> Settling:
    ids = ", ".join(request.claim_ids)
    what = f"claim id {ids}" if ids else "what the request is to be counted in, or draws on,"
    return Settling(
        f"{what} may be known to hosts that have not attested to the new epoch yet: try again"
        f"{wait_text(cell.name, cell.updater.clock)}",
        UnavailableFacts(claim_ids=tuple(request.claim_ids)),
    )
