"""The steps of a claim whose work has ended by itself: report it to the store, then act on the claim's `on_exit`.

    release: journal (ENDING, work_end) -> hook stop -> gone (work-ended) -> tombstone
    replace: work_ended -> hook stop -> fail -> tombstone; with exit status 0 as for release
    keep:    work_ended -> journal (work_end)

The stop hook cleans up what the work has left behind. Interrupted steps start again at the next check.
"""

import dataclasses

from redsched import logs
from redsched.agent.claims.context import LifecycleContext
from redsched.agent.claims.lifecycle import ClaimLifecycle
from redsched.agent.claims.stopping import EndSteps
from redsched.agent.journal.schema import JournalEntry, WorkEnd
from redsched.model import EndReason, OnExit
from redsched.model.claims import exit_status_in
from redsched.store.agent_calls import WorkEndedCall
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult

_log = logs.get_logger("redsched.agent")


class WorkEndedSteps:
    """Handles claims of one host whose work has ended by itself."""

    def __init__(self, context: LifecycleContext, ending: EndSteps, lifecycle: ClaimLifecycle) -> None:
        self._context = context
        self._host = context.host
        self._ending = ending
        self._lifecycle = lifecycle

    async def apply_on_exit(self, work: JournalEntry, text: str) -> None:
        """Act on the claim's `on_exit`. `text` describes how the work was observed to have ended."""
        _log.warning("work has ended by itself", host=self._host.name, claim=work.id, on_exit=work.on_exit, reason=text)
        # Work that has done what it was for is not started again: a job that is placed again if it fails.
        if work.on_exit is OnExit.RELEASE or (work.on_exit is OnExit.REPLACE and exit_status_in(text) == 0):
            await self._context.write(dataclasses.replace(work, work_end=WorkEnd(text, self._host.now_ms)))
            await self._ending.end(work, end_reason=EndReason.WORK_ENDED)
            return
        answer = await self._report_work_ended(work, text)
        if answer.outcome is Outcome.STALE and (resized := await self._context.resized_meanwhile(work)) is not None:
            work, answer = resized, await self._report_work_ended(resized, text)
        if answer.outcome is Outcome.ENDING:
            await self._ending.end(work)
        elif answer.outcome not in (Outcome.OK, Outcome.ALREADY_DONE):
            await self._ending.stop_freed(work)
        elif work.on_exit is OnExit.REPLACE:
            await self._lifecycle.fail(work, text, began=True)
        else:
            await self._context.write(dataclasses.replace(work, work_end=WorkEnd(text, answer.now_ms)))

    async def _report_work_ended(self, work: JournalEntry, text: str) -> ScriptResult:
        return await self._context.call(lambda: WorkEndedCall(*self._context.named(work), text))
