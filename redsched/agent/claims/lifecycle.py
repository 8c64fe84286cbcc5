"""The steps of a placement on its host: taking it up, and what goes wrong on the way.

    CLAIMED -accept-> STARTING -hook start-> running -confirm-> ACTIVE -end-> ENDING -hook stop, gone-> tombstone

The journal is durable before accept, and the hook runs only after it: what a crash interrupts is asked for again.
Only the store decides whether a placement stands, by an answer in the epoch that this host has attested to. A host can
have two placements of one claim, as when it moves to other pools there; each goes its own way. Orders of an older token
than the journal has for the same placement are not followed. How placements end is in `stopping`, resizing in
`resizing`, local work in `local`; `steps` puts them together.
"""

import asyncio
import dataclasses
from collections.abc import Coroutine

import structlog

from redsched.agent.claims.context import LifecycleContext, has_fallen, objects_of, placements_here
from redsched.agent.claims.resizing import ResizeSteps
from redsched.agent.claims.stopping import EndSteps
from redsched.agent.hooks.base import HookFailed, HookNotRun, NoHook, Verb, named_in
from redsched.agent.host_session import BEATS_IN_LEASE
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.tokens import is_newer_token
from redsched.aio import end_all
from redsched.model import ClaimStatus
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import InboxEntry, ScriptResult

_ENDED = (Outcome.ENDED, Outcome.STALE, Outcome.UNKNOWN)
_DONE = (Outcome.OK, Outcome.ALREADY_DONE)
_log = structlog.get_logger("redsched.agent")


class _Ended(Exception):
    """The store's answer about a placement whose hook is running: it is to be stopped."""

    def __init__(self, work: JournalEntry, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.work = work
        self.outcome = outcome


class ClaimLifecycle:
    """Taking a placement up: its start, its confirmation, its failure."""

    def __init__(self, context: LifecycleContext, ending: EndSteps, resizing: ResizeSteps) -> None:
        self._context = context
        self._host = context.host
        self._ending = ending
        self._resizing = resizing

    async def take_up(self, work: JournalEntry, entry_id: str = "") -> None:
        """Journal it, tell the store, start its work, say that it runs. What is half done goes on, a resize too."""
        known = self._context.held.get(work.placed)
        if known is not None and is_newer_token(known.token, work.token):
            await self._refuse(work, entry_id)
            return
        is_new = known is None or (known.token != work.token and known.state is ClaimStatus.CLAIMED)
        if known is None or is_new:
            durable = self._context.write(work)
            await self._context.keep_request("" if work.is_local else work.digest)
            await durable
        elif known.token != work.token:
            work = await self._context.adopt(known, work)
        elif work.resizing_to and not known.resizing_to:
            # Resized, as the journal knows, and the store has lost the word of it: it is said again.
            work = known.with_amounts(known.amounts, resizing_to=known.amounts, before=known.amounts)
        else:
            work = known
        answer = await self._accept(work, entry_id)
        if answer.outcome in _DONE:
            if is_new and self._host.journal.has_ended(self._host.name, work.placed, work.token):
                await self._tell_that_it_ended(work)
            else:
                await self._start(work)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work)
        elif is_new and work.state is ClaimStatus.CLAIMED:
            await self._host.journal.write_forgotten(self._host.name, work.placed)
        elif answer.outcome is not Outcome.STALE or await self._context.resized_meanwhile(work) is None:
            await self._ending.lose(work)

    async def _refuse(self, work: JournalEntry, entry_id: str) -> None:
        """Discard an order by an older token than the journal's, with its hint.

        Should the store answer that the older token stands, it has lost the newer one.
        """
        _log.warning("an order by an older token is discarded", host=self._host.name, claim=work.id, token=work.token)
        answer = await self._accept(work, entry_id)
        if answer.outcome in _DONE:
            await self._context.line.ask(self._host.begin_new_epoch)

    async def _tell_that_it_ended(self, work: JournalEntry) -> None:
        """The store holds what it had been told is gone: it has lost writes. Attesting anew ends it again."""
        await self._host.journal.write_forgotten(self._host.name, work.placed)
        await self._context.line.ask(self._host.begin_new_epoch)

    async def _start(self, work: JournalEntry) -> None:
        # What runs needs no start; nor does local work, which ran before the store knew of it.
        if not work.is_running and not work.is_local and work.state is not ClaimStatus.ACTIVE:
            # In the same step as the store's answer: from here on the host attests that it may have been begun. What
            # is called claimed would be freed by a lease or a release at once.
            begun = dataclasses.replace(work, state=ClaimStatus.STARTING)
            durable = self._context.write(begun)
            if reason := await self._context.lacks(work, work.amounts):
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
                    self._ending.end(ended.work) if ended.outcome is Outcome.ENDING else self._ending.lose(ended.work)
                )
                return
        # Durable before the store hears of it: what it says is active is not started again after a crash, and should
        # the store forget, this host brings it back as active, on which no lease runs.
        work = dataclasses.replace(work, state=ClaimStatus.ACTIVE)
        await self._context.write(work)
        await self._confirm(work)

    async def _confirm(self, work: JournalEntry) -> None:
        answer = await self._context.say(
            lambda: self._host.cell.claims.confirm(self._host.name, work.id, work.token, epoch=self._host.epoch)
        )
        if answer.outcome in _DONE:
            await self._resizing.resize(work)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work, gang_failed=bool(work.gang) and await self._has_fallen(work))
        elif answer.outcome is Outcome.STALE and (anew := await self._context.resized_meanwhile(work)) is not None:
            await self._confirm(anew)
        else:
            await self._ending.lose(work)

    async def _run_start(self, work: JournalEntry) -> JournalEntry:
        started = work.resizing_to or work.amounts
        work, output = await self._renewing(work, self._context.run_hook(Verb.START, work))
        named = named_in(output) if output else None
        return dataclasses.replace(work, is_running=True, named=named, before=started if work.resizing_to else {})

    async def _renewing(self, work: JournalEntry, hook: Coroutine[None, None, bytes]) -> tuple[JournalEntry, bytes]:
        """Run a hook and keep the lease meanwhile; the placement comes back by a newer token when it was resized.

        That the hook is done is noticed although a renewal waits for a store that is away.
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
            anew = await self._context.resized_meanwhile(work) if answer.outcome is Outcome.STALE else None
            if anew is None and answer.outcome not in _DONE:
                return answer.outcome
            work = anew or work

    async def fail(self, work: JournalEntry, reason: str, began: bool) -> None:
        """Clean up, and tell the store. Freed at once only where nothing is left of it, else when it is stopped."""
        _log.warning("a claim has failed on its host", host=self._host.name, claim=work.id, reason=reason)
        # Not only this process: one before it may have begun to start the work.
        may_be_there = began or work.state is not ClaimStatus.CLAIMED
        is_gone = not may_be_there or await self._context.stop_once(work)
        answer = await self._say_failed(work, is_gone, reason)
        if answer.outcome is Outcome.STALE and (anew := await self._context.resized_meanwhile(work)) is not None:
            work, answer = anew, await self._say_failed(anew, is_gone, reason)
        if is_gone:
            await self._context.bury(work, answer)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work)
        else:
            await self._ending.lose(work)

    async def _has_fallen(self, work: JournalEntry) -> bool:
        claim = (await self._context.line.ask(lambda: self._host.cell.claims.read([work.id]))).get(work.id)
        here = placements_here(claim, self._host.name) if claim else []
        return any(has_fallen(claim, one) for one in here if one.placed == work.placed)

    async def ask_about(self, work: JournalEntry) -> None:
        """Ask about a placement that only the journal has. A plain read found none, but only a script may stop work."""
        answer = await self._renew(work)
        if answer.outcome is Outcome.STALE and await self._context.resized_meanwhile(work) is not None:
            return
        if answer.outcome in _ENDED:
            await self._ending.lose(work)
        elif answer.outcome is Outcome.ENDING:
            await self._ending.end(work)

    async def discard(self, entry: InboxEntry) -> None:
        """Take out a hint whose placement is gone: accept does that. Should it not be gone, comparing finds it."""
        await self._accept(JournalEntry(entry.claim_id, entry.token, entry.token, entry.token), entry.entry_id)

    # -- what the store is told

    async def _accept(self, work: JournalEntry, entry_id: str) -> ScriptResult:
        return await self._context.say(
            lambda: self._host.cell.claims.accept(self._host.name, work.id, work.token, self._context.lease_s, entry_id)
        )

    async def _renew(self, work: JournalEntry) -> ScriptResult:
        return await self._context.say(
            lambda: self._host.cell.claims.renew(self._host.name, work.id, work.token, self._context.lease_s)
        )

    async def _say_failed(self, work: JournalEntry, is_gone: bool, reason: str) -> ScriptResult:
        return await self._context.say(
            lambda: self._host.cell.claims.fail(
                self._host.name, work.id, work.token, is_gone, objects_of(work), reason=reason
            )
        )
