"""The steps of a claim whose work has ended by itself: the store is told, and `on_exit` says what becomes of it.

    release: journal (ENDING, why) -> hook stop -> gone (work-ended) -> tombstone
    replace: work_ended -> hook stop -> fail -> tombstone
    keep:    work_ended -> journal (why)

The stop hook cleans up what the work has left. Interrupted, all of it begins anew with the next look.
"""

import dataclasses

import structlog

from redsched.agent.claims.lifecycle import ClaimLifecycle
from redsched.agent.journal.schema import JournalEntry, WorkEnd
from redsched.model import OnExit
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult

_log = structlog.get_logger("redsched.agent")


class WorkEndedSteps(ClaimLifecycle):
    """What one host does with a claim, also when its work ends by itself."""

    __slots__ = ()

    async def work_ended(self, work: JournalEntry, text: str) -> None:
        """Do what `on_exit` says. `text`: what was seen of the work's end."""
        _log.warning("work has ended by itself", host=self.host.name, claim=work.id, on_exit=work.on_exit, reason=text)
        if work.on_exit is OnExit.RELEASE:
            await self._write(dataclasses.replace(work, work_end=WorkEnd(text, self.host.now_ms)))
            await self.end(work)
            return
        answer = await self._say_work_ended(work, text)
        if answer.outcome is Outcome.STALE and (anew := await self._resized_meanwhile(work)) is not None:
            work, answer = anew, await self._say_work_ended(anew, text)
        if answer.outcome is Outcome.ENDING:
            await self.end(work)
        elif answer.outcome not in (Outcome.OK, Outcome.ALREADY_DONE):
            await self.lose(work)
        elif work.on_exit is OnExit.REPLACE:
            await self._fail(work, text, began=True)
        else:
            await self._write(dataclasses.replace(work, work_end=WorkEnd(text, answer.now_ms)))

    async def _say_work_ended(self, work: JournalEntry, text: str) -> ScriptResult:
        return await self._say(lambda: self.host.cell.work_ended(self.host.name, work.id, work.token, text))
