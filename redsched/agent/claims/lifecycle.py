"""The steps of a placement on its host: its start, its confirmation, and failures on the way.

    CLAIMED -accept-> STARTING -hook start-> running -confirm-> ACTIVE -end-> ENDING -hook stop, gone-> tombstone

The journal is durable before accept, and the hook runs only after it, so steps that a crash interrupts are repeated.
Only the store decides whether a placement is valid, by a reply in the epoch that this host has attested to. A host can
have two placements of one claim, for example while it moves to other pools there; they are handled independently.
Notifications with an older token than the journal has for the same placement are discarded. `stopping` ends placements,
`resizing` resizes them, `local` handles local work; `steps` combines these.
"""

import asyncio
import dataclasses
from collections.abc import Coroutine

from redsched import logs, tracing
from redsched.agent.claims.context import LifecycleContext, is_of_failed_gang, objects_of, placements_here
from redsched.agent.claims.resizing import ResizeSteps
from redsched.agent.claims.stopping import EndSteps
from redsched.agent.hooks.base import HookFailed, HookNotRun, NoHook, Verb, named_in
from redsched.agent.host_session import BEATS_IN_LEASE
from redsched.agent.journal.schema import JournalEntry
from redsched.aio import end_all
from redsched.model import ClaimStatus, EndReason
from redsched.model.tokens import is_newer_token
from redsched.store.agent_calls import AcceptCall, ConfirmCall, FailCall, RenewCall
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import InboxEntry, ScriptResult

_ENDED = (Outcome.ENDED, Outcome.STALE, Outcome.UNKNOWN)
_DONE = (Outcome.OK, Outcome.ALREADY_DONE)
_log = logs.get_logger("redsched.agent")


class _Ended(Exception):
    """The store has replied that a placement whose hook is running must be stopped."""

    def __init__(self, work: JournalEntry, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.work = work
        self.outcome = outcome


class ClaimLifecycle:
    """Accepts, starts and confirms placements, and reports failed ones."""

    def __init__(self, context: LifecycleContext, ending: EndSteps, resizing: ResizeSteps) -> None:
        self._context = context
        self._host = context.host
        self._ending = ending
        self._resizing = resizing

    async def bring_up(self, work: JournalEntry, entry_id: str = "") -> None:
        """Journal a placement, accept it, start its work and confirm it; or resume these steps, or its resize."""
        known = self._context.held.get(work.placed)
        if known is not None and is_newer_token(known.token, work.token):
            await self._refuse(work, entry_id)
            return
        is_new = known is None or (known.token != work.token and known.state is ClaimStatus.CLAIMED)
        if known is None or is_new:
            await self._context.write_with_texts(work)
        elif known.token != work.token:
            work = await self._context.adopt(known, work)
        elif work.resizing_to and not known.resizing_to:
            # According to the journal it was resized, and the store has lost that report: repeat the report.
            work = known.with_amounts(known.amounts, resizing_to=known.amounts, before=known.amounts)
        else:
            # An earlier task may have been cancelled or have failed before this write was durable, so repeat it.
            work = known
            await self._context.write_with_texts(work)
        answer = await self._accept(work, entry_id)
        if answer.outcome in _DONE:
            if is_new and self._host.journal.has_ended(self._host.name, work.placed, work.token):
                await self._begin_new_epoch(work)
            else:
                await self._start(work)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work)
        elif is_new and work.state is ClaimStatus.CLAIMED:
            await self._host.journal.write_forgotten(self._host.name, work.placed)
        elif answer.outcome is not Outcome.STALE or await self._context.resized_meanwhile(work) is None:
            await self._ending.stop_freed(work)

    async def _refuse(self, work: JournalEntry, entry_id: str) -> None:
        """Discard a notification with an older token than the journal's.

        If the store accepts the older token, it has lost the newer one: begin a new epoch.
        """
        _log.warning("inbox entry with an older token discarded", host=self._host.name, claim=work.id, token=work.token)
        answer = await self._accept(work, entry_id)
        if answer.outcome in _DONE:
            await self._context.backoff.call(self._host.begin_new_epoch)

    async def _begin_new_epoch(self, work: JournalEntry) -> None:
        """Begin a new epoch: the store still has a placement that was reported gone, so it has lost writes.

        The host's attestation to the new epoch ends the placement again.
        """
        await self._host.journal.write_forgotten(self._host.name, work.placed)
        await self._context.backoff.call(self._host.begin_new_epoch)

    async def _start(self, work: JournalEntry) -> None:
        if self._host.is_overdue(work):
            return  # `RuntimeLimits` ends it
        # Running work needs no start. Neither does local work, which ran before the store had a claim for it.
        if not work.is_running and not work.is_local and work.state is not ClaimStatus.ACTIVE:
            # Journaled without a pause after the store's reply: from now on the host attests that the work may have
            # started. A CLAIMED placement would be freed at once when its lease expires or it is released.
            begun = dataclasses.replace(work, state=ClaimStatus.STARTING)
            durable = self._context.write(begun)
            if reason := await self._context.missing_capacity(work, work.amounts):
                await self.fail(work, f"the host cannot hold it: {reason}", began=False)
                return
            await durable
            try:
                work = begun if isinstance(self._context.hook, NoHook) else await self._run_start(begun)
            except HookFailed as error:
                await self.fail(work, error.reason, began=not isinstance(error, HookNotRun))
                return
            except _Ended as ended:
                await (
                    self._ending.end(ended.work)
                    if ended.outcome is Outcome.ENDING
                    else self._ending.stop_freed(ended.work)
                )
                return
        # Durable before the confirmation: after a crash active work is not started again, and if the store loses the
        # confirmation, this host attests the placement as active, which has no lease.
        work = dataclasses.replace(work, state=ClaimStatus.ACTIVE)
        await self._context.write(work)
        await self._confirm(work)

    async def _confirm(self, work: JournalEntry) -> None:
        with tracing.span("redsched.confirm", claim_id=work.id):
            answer = await self._context.call(
                lambda: ConfirmCall(*self._context.named(work), self._host.epoch, work.log)
            )
        if answer.outcome in _DONE:
            await self._resizing.resize(work)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work, gang_failed=bool(work.gang) and await self._is_of_failed_gang(work))
        elif answer.outcome is Outcome.STALE and (resized := await self._context.resized_meanwhile(work)) is not None:
            await self._confirm(resized)
        else:
            await self._ending.stop_freed(work)

    async def _run_start(self, work: JournalEntry) -> JournalEntry:
        started = work.resizing_to or work.amounts
        work, output = await self._renewing(work, self._context.run_hook(Verb.START, work))
        named = named_in(output) if output else None
        return dataclasses.replace(work, is_running=True, named=named, before=started if work.resizing_to else {})

    async def _renewing(self, work: JournalEntry, hook: Coroutine[None, None, bytes]) -> tuple[JournalEntry, bytes]:
        """Run a hook, renewing the lease until it ends. Returns the placement (newer token if resized) and the output.

        The end of the hook is noticed even while a renewal waits for an unavailable store.
        """
        running, renewing = asyncio.create_task(hook), asyncio.create_task(self._renew_until_it_ended(work))
        try:
            await asyncio.wait([running, renewing], return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise _Ended(self._context.held.get(work.placed, work), renewing.result())
            return self._context.held.get(work.placed, work), running.result()
        finally:
            await end_all([running, renewing])

    async def _renew_until_it_ended(self, work: JournalEntry) -> Outcome:
        while True:
            await asyncio.sleep(self._context.lease_s / BEATS_IN_LEASE)
            answer = await self._renew(work)
            resized = await self._context.resized_meanwhile(work) if answer.outcome is Outcome.STALE else None
            if resized is None and answer.outcome not in _DONE:
                return answer.outcome
            work = resized or work

    async def fail(self, work: JournalEntry, reason: str, began: bool) -> None:
        """Clean up and report the failure to the store, which frees the amounts once nothing is left of the work."""
        _log.warning("claim failed on its host", host=self._host.name, claim=work.id, reason=reason)
        # An earlier process of this agent may have begun to start the work too.
        may_be_there = began or work.state is not ClaimStatus.CLAIMED
        is_gone = not may_be_there or await self._context.stop_once(work)
        answer = await self._report_failed(work, is_gone, reason)
        if answer.outcome is Outcome.STALE and (resized := await self._context.resized_meanwhile(work)) is not None:
            work, answer = resized, await self._report_failed(resized, is_gone, reason)
        if is_gone:
            await self._context.write_tombstone(work)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work, end_reason=EndReason.FAILED)
        else:
            await self._ending.stop_freed(work)

    async def _is_of_failed_gang(self, work: JournalEntry) -> bool:
        claim = await self._context.read_claim(work.id)
        here = placements_here(claim, self._host.name) if claim else []
        return any(is_of_failed_gang(claim, one) for one in here if one.placed == work.placed)

    async def renew_missing(self, work: JournalEntry) -> None:
        """Renew a placement that a plain read did not find, because only the outcome of a script may stop its work."""
        answer = await self._renew(work)
        if answer.outcome is Outcome.STALE and await self._context.resized_meanwhile(work) is not None:
            return
        if answer.outcome in _ENDED:
            await self._ending.stop_freed(work)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work)

    async def discard(self, entry: InboxEntry) -> None:
        """Delete the notification of an ended placement by an accept call. Comparisons find those that still exist."""
        await self._accept(JournalEntry(entry.claim_id, entry.token, entry.token, entry.token), entry.entry_id)

    # -- calls to the store

    async def _accept(self, work: JournalEntry, entry_id: str) -> ScriptResult:
        placement, lease_s = self._context.named(work), self._context.lease_s
        return await self._context.call(lambda: AcceptCall(*placement, lease_s, entry_id))

    async def _renew(self, work: JournalEntry) -> ScriptResult:
        return await self._context.call(lambda: RenewCall(*self._context.named(work), self._context.lease_s))

    async def _report_failed(self, work: JournalEntry, is_gone: bool, reason: str) -> ScriptResult:
        call = FailCall(*self._context.named(work), reason, is_gone=is_gone)
        return await self._context.call(lambda: call, objects_of(work))
