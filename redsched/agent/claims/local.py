"""The steps of a local claim: work that this host found running, and that the store cannot refuse."""

import dataclasses

from redsched import logs
from redsched.agent.claims.context import LifecycleContext
from redsched.agent.claims.stopping import EndSteps
from redsched.agent.collectors.base import LocalWork
from redsched.agent.journal.schema import JournalEntry
from redsched.model import ClaimStatus
from redsched.model.claims import LOCAL
from redsched.store.agent_calls import LocalCall
from redsched.store.codec.claim_fields import record_with
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult

_log = logs.get_logger("redsched.agent")


class LocalSteps:
    """Creates claims for local work, and releases them when the work is gone. Neither step runs a hook."""

    def __init__(self, context: LifecycleContext, ending: EndSteps) -> None:
        self._context = context
        self._host = context.host
        self._ending = ending

    async def claim(self, found: LocalWork) -> None:
        """Create the claim of work that runs on this host, or report the work's new amounts."""
        known = next((work for work in self._context.held.values() if work.id == found.id), None)
        token = known.token if known is not None else self._host.journal.ended_token(self._host.name, found.id)
        answer = await self._claim_local(found, token)
        if answer.outcome is Outcome.STALE:
            # A reply was lost, or the journal no longer has the token: repeat the call with the token in the reply.
            answer = await self._claim_local(found, answer.facts[0])
        if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
            self._context.conflicts.discard(found.id)
            await self._write_local(found, known, answer)
        elif found.id not in self._context.conflicts:
            self._context.conflicts.add(found.id)
            _log.error(_problem(answer), host=self._host.name, claim=found.id)

    async def _write_local(self, found: LocalWork, known: JournalEntry | None, answer: ScriptResult) -> None:
        token, placed = answer.facts
        if known is not None and known.placed != placed:
            # The store has ended the placement that the journal holds, and made another one for the same work.
            self._host.journal.write_ended(self._host.name, known)
            known = None
        base = known or JournalEntry(found.id, placed, token, placed, {"claimed_at_ms": str(answer.now_ms)})
        await self._context.write(updated_entry(found, dataclasses.replace(base, token=token)))

    async def release(self, work: JournalEntry) -> None:
        """Release a local claim. Its work is gone, so there is nothing to stop."""
        await self._ending.report_gone(work)

    async def _claim_local(self, found: LocalWork, token: str) -> ScriptResult:
        call = LocalCall(self._host.name, found.id, found.amounts, found.project, found.consumer, token)
        return await self._context.call(lambda: call)


def _problem(answer: ScriptResult) -> str:
    """Return why the store does not count local work, and what helps."""
    if answer.outcome is Outcome.FULL:
        return f"local work is not counted: {answer.facts[0]} would be too high: correct its amounts or its number"
    return "local work has the id of another claim: give it one of its own"


def updated_entry(found: LocalWork, held: JournalEntry) -> JournalEntry:
    """Return the journal entry of local work, updated to what was found now."""
    own = {"project": found.project, "consumer": found.consumer, "digest": LOCAL}
    return dataclasses.replace(
        held,
        record=record_with({**held.record, **own}, found.amounts, {}),
        state=ClaimStatus.ACTIVE,
        is_running=True,
        named=found.named,
        before={},
    )
