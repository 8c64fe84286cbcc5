"""Resize a claim's work in place: the hook resizes the work, then the store frees what is no longer needed.

    resize notification -> journal (token, resizing_to) -> hook resize -> journal (what the work has) -> resized
                                                       `- failed: the work keeps its amounts

The journal knows at each step what the work has (`before`) and what it will have (`resizing_to`), so an interrupted
resize continues from there, and a hook that has finished is not run again.
"""

import dataclasses

from redsched import logs
from redsched.agent.claims.context import LifecycleContext, objects_of
from redsched.agent.claims.stopping import EndSteps
from redsched.agent.hooks.base import HookFailed, Verb, named_in
from redsched.agent.journal.schema import JournalEntry
from redsched.store.agent_calls import ResizedCall
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult

_log = logs.get_logger("redsched.agent")


class ResizeSteps:
    """Resizes claims whose work is running."""

    def __init__(self, context: LifecycleContext, ending: EndSteps) -> None:
        self._context = context
        self._host = context.host
        self._ending = ending

    async def resize(self, work: JournalEntry) -> None:
        """Continue a resize until the store has recorded it or the claim must end."""
        while work.resizing_to:
            if work.before != work.resizing_to:
                work = await self._run_resize(work)
                # Durable before the report, because the store must not free amounts that the work still has.
                await self._context.write(work)
            answer = await self._report_resized(work)
            if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
                self._context.write(work.with_amounts(work.resizing_to, resizing_to={}, before={}))
                return
            resized = await self._context.resized_meanwhile(work) if answer.outcome is Outcome.STALE else None
            if resized is None:
                await (self._ending.end(work) if answer.outcome is Outcome.ENDING else self._ending.stop_freed(work))
                return
            work = resized

    async def _report_resized(self, work: JournalEntry) -> ScriptResult:
        call = ResizedCall(*self._context.named(work), work.resizing_to)
        return await self._context.call(lambda: call, objects_of(work))

    async def _run_resize(self, work: JournalEntry) -> JournalEntry:
        """Run the resize hook. If it fails, the work keeps its amounts and the additional ones are released."""
        reason = await self._context.missing_capacity(work, work.resizing_to)
        if not reason:
            try:
                output = await self._context.run_hook(Verb.RESIZE, work)
            except HookFailed as error:
                reason = str(error)
        if reason:
            _log.warning("claim could not be resized", host=self._host.name, claim=work.id, reason=reason)
            kept = work.before or work.amounts
            return work.with_amounts(work.amounts, resizing_to=kept, before=kept)
        if named := named_in(output):
            return dataclasses.replace(work, before=work.resizing_to, named=named, work_end=None)
        return dataclasses.replace(work, before=work.resizing_to)
