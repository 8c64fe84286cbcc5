"""The last steps of a placement on its host: stop its work, because the store requests it or has freed it."""

import dataclasses

from redsched import logs
from redsched.agent.claims.context import LifecycleContext, objects_of
from redsched.agent.journal.schema import JournalEntry
from redsched.model import ClaimStatus, EndReason
from redsched.store.agent_calls import GoneCall
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult

_log = logs.get_logger("redsched.agent")


class EndSteps:
    """Ends placements that the store ends, and stops the work of those that it has freed."""

    def __init__(self, context: LifecycleContext) -> None:
        self._context = context
        self._host = context.host

    async def end(
        self, work: JournalEntry, entry_id: str = "", end_reason: EndReason | None = None, gang_failed: bool = False
    ) -> None:
        """Stop the work, and report to the store that it is gone and what is in use now.

        `end_reason` is the store's reason, if known: the journal keeps it, in case the store loses it.
        With `gang_failed` the placement counts as never active, even if it was: a store that is rolled back to an
        earlier state must not consider the gang complete.
        """
        known = self._context.held.get(work.placed) or work
        work = as_ending(dataclasses.replace(known, origin=work.origin), end_reason, gang_failed)
        # Durable before the hook runs: after a crash, the host must not attest it as active in a new epoch.
        await self._context.write(work)
        await self._context.stop(work)
        await self.report_gone(work, entry_id)

    async def stop_freed(self, work: JournalEntry) -> None:
        """Stop the work of a placement that the store has already freed, so there is nothing to report."""
        _log.info("a placement was freed without this host", host=self._host.name, claim=work.id, placed=work.placed)
        await self._context.stop(work)
        await self._host.journal.write_ended(self._host.name, work)

    async def report_gone(self, work: JournalEntry, entry_id: str = "") -> None:
        """Report that the work is gone, with the newest token if the claim was resized in the meantime."""
        external = await self._host.external_without(work.placed)
        answer = await self._report_gone(work, external, entry_id)
        if answer.outcome is Outcome.STALE and (resized := await self._context.resized_meanwhile(work)) is not None:
            work, answer = resized, await self._report_gone(resized, external, entry_id)
        if answer.outcome is Outcome.OK:
            self._host.note_external(external)
        await self._context.write_tombstone(work, answer.facts[0] if answer.facts else "")

    async def _report_gone(self, work: JournalEntry, external: dict[str, int], entry_id: str) -> ScriptResult:
        # The store ignores this reason for a claim that its owner has released.
        end_reason, reason = _cause(work)
        call = GoneCall(*self._context.named(work), reason, end_reason=end_reason, external=external, entry_id=entry_id)
        return await self._context.call(lambda: call, objects_of(work))


def as_ending(work: JournalEntry, end_reason: EndReason | None = None, gang_failed: bool = False) -> JournalEntry:
    """Return a placement as the journal has it from the beginning of its end on."""
    record = {**work.record, "end_reason": end_reason.value} if end_reason else work.record
    was_active = work.was_active or work.state is ClaimStatus.ACTIVE
    return dataclasses.replace(work, record=record, state=ClaimStatus.ENDING, was_active=was_active and not gang_failed)


def _cause(work: JournalEntry) -> tuple[EndReason, str]:
    """Return the reason, and its text, with which a host reports a placement that the store has not ended."""
    if work.record.get("end_reason") == EndReason.MAX_RUNTIME:
        return EndReason.MAX_RUNTIME, f"its max_runtime_s of {work.record.get('max_runtime_s')} s has passed"
    if work.work_end is not None:
        return EndReason.WORK_ENDED, work.work_end.text
    return EndReason.RELEASED, ""
