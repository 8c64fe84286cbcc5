"""Joint claim calls: requests that arrive together and ask for the same are claimed by one call of the script.

The script places all members of a joint call or none, but the requests remain independent: unless all were placed, each
is claimed by a call of its own, with the same id, and gets an outcome of its own.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from redsched import aio, origin
from redsched.decide.result import Decision
from redsched.model import Request
from redsched.model.record import record
from redsched.origin import Origin
from redsched.scheduler.cells import Cell
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.selection.attempt import Proposal
from redsched.scheduler.selection.claim_call import claim_call
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply

MAX_REQUESTS = 32
"""The most requests in one call: each blocks the store for some 30 us more."""

_Answer = asyncio.Future[ClaimReply | None]
"""The answer to a request; None if it needs a call of its own."""


@record
class _Waiting:
    """A request with a proposal for its only place, and the id for it."""

    request: Request
    proposal: Proposal
    claim_id: str
    owner: str
    answer: _Answer
    origin: Origin
    """Who asked for it: the call is shared, and its task belongs to none of the requests."""


class JointCalls:
    """Collects requests while a call is in flight to their cell, then makes one call for those that ask for the same.

    That delays none of them: the calls of a process to one server are sent after the replies to the calls before.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._waiting: dict[str, list[_Waiting]] = {}
        """By cell."""
        self._in_flight: Counter[str] = Counter()
        """The number of calls in flight, by cell."""
        self._tasks = aio.BackgroundTasks("redsched-joint-claims")

    async def claim(
        self, request: Request, proposal: Proposal, ids: Sequence[str], owner: str = ""
    ) -> ClaimReply | None:
        """Claim a request's place together with others. None if it has to be claimed by a call of its own.

        The reply has been applied to the replica; the answer has only the request's own part of it. Raises Unavailable.
        """
        if not _may_join(request, proposal.decision):
            return None
        answer: _Answer = asyncio.get_running_loop().create_future()
        self._join(_Waiting(request, proposal, ids[0], owner, answer, origin.current()))
        return await answer

    def _join(self, one: _Waiting) -> None:
        cell = one.proposal.cell.name
        waiting = self._waiting.setdefault(cell, [])
        waiting.append(one)
        if len(waiting) == 1 and not self._in_flight[cell]:
            # Others may follow in this turn of the event loop.
            asyncio.get_running_loop().call_soon(self._send, cell)

    def _send(self, cell: str) -> None:
        """Make calls of all requests that wait. Those that were cancelled meanwhile are left out."""
        alike: dict[tuple[str, str, str], list[_Waiting]] = {}
        for one in self._waiting.pop(cell):
            if not one.answer.done():
                # The digest is of what is requested, and for which project.
                key = (one.proposal.epoch, one.request.digest(), one.owner)
                alike.setdefault(key, []).append(one)
        for requests in alike.values():
            for first in range(0, len(requests), MAX_REQUESTS):
                self._in_flight[cell] += 1
                self._tasks.begin(self._claim(requests[first : first + MAX_REQUESTS]))

    async def _claim(self, batch: Sequence[_Waiting]) -> None:
        cell = batch[0].proposal.cell
        call = _call(cell, batch)
        try:
            joint = await self._quotas.claim_once(cell, call)
        except Exception as error:
            for one in batch:
                if not one.answer.done():
                    one.answer.set_exception(error)
        else:
            cell.apply(call, joint)
            _answer(batch, _parts(joint, len(batch)))
        finally:
            self._in_flight[cell.name] -= 1
        if cell.name in self._waiting and not self._in_flight[cell.name]:
            self._send(cell.name)


def _may_join(request: Request, decision: Decision) -> bool:
    """Return whether a request's place depends on no other, and its id is known to nobody else."""
    is_single = len(decision.places) == 1 and request.count == 1 and not request.members
    return is_single and not (request.claim_ids or decision.rules or decision.alternates)


def _call(cell: Cell, batch: Sequence[_Waiting]) -> ClaimCall:
    first = batch[0]
    places = tuple(one.proposal.decision.places[0] for one in batch)
    decision = replace(first.proposal.decision, places=places)
    seq = min(one.proposal.seq for one in batch)
    ids = [one.claim_id for one in batch]
    call = claim_call(first.request, cell, decision, ids, first.proposal.epoch, seq, owner=first.owner)
    return replace(call, origins=tuple(one.origin for one in batch))


def _parts(joint: ClaimReply, requests: int) -> Sequence[ClaimReply | None]:
    """Return the answer to each request of a call."""
    if joint.outcome is Outcome.OK:
        return [ClaimReply(joint.outcome, joint.epoch, joint.now_ms, (placed,)) for placed in joint.placed]
    is_final = requests == 1 and joint.outcome not in (Outcome.OVER_QUOTA, Outcome.UNSHARED)
    return [joint] if is_final else [None] * requests


def _answer(batch: Sequence[_Waiting], answers: Sequence[ClaimReply | None]) -> None:
    for one, answer in zip(batch, answers, strict=True):
        if not one.answer.done():
            one.answer.set_result(answer)
