"""The steps of a claim's life on its host: taking it up, ending it, and what goes wrong on the way.

    CLAIMED -accept-> STARTING -hook start-> running -confirm-> ACTIVE -end-> ENDING -hook stop, gone-> tombstone

The journal is durable before accept, and the hook runs only after it: what a crash interrupts is asked for again.
Whether a claim stands is the store's word alone, given to this host in the epoch that it has attested to.
"""

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass

import structlog

from redsched.agent.hooks import Hook, HookFailed, HookNotRun, NoHook, Order, Verb, named_in
from redsched.agent.host import BEATS_IN_LEASE, Host
from redsched.agent.journal_schema import HeldWork
from redsched.agent.line import Line
from redsched.model import ClaimStatus, Why
from redsched.names import SHARED_POOL
from redsched.store import Answer, InboxEntry, Outcome
from redsched.tasks import end

FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 60.0
"""Pauses between the tries of a hook that fails to stop work. It must succeed some day: the work is still there."""

ASK_AGAIN_S = 0.05
"""Before asking again in the new epoch, so that an old copy of the store is not asked in circles."""

_ENDED = (Outcome.GONE, Outcome.STALE, Outcome.UNKNOWN)
_log = structlog.get_logger("redsched.agent")


class _Ended(Exception):
    """The store's word on a claim whose hook is running: it is to be stopped."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Steps:
    """What one host does with a claim. `hooks` bounds how many hooks run at once in this process."""

    host: Host
    line: Line
    hook: Hook
    hooks: asyncio.Semaphore

    @property
    def held(self) -> dict[str, HeldWork]:
        """The claims in this host's journal."""
        return self.host.journal.pages[self.host.name].held

    async def take_up(self, work: HeldWork, entry_id: str = "") -> None:
        """Journal it, tell the store, start its work, say that it runs."""
        known = self.held.get(work.id)
        is_new = known is None or known.token != work.token
        work = work if known is None or is_new else known
        if is_new:
            await self._write(work)
        answer = await self._say(
            lambda: self.host.cell.accept(self.host.name, work.id, work.token, self._lease_s(), entry_id)
        )
        if answer.outcome in (Outcome.OK, Outcome.SAME):
            if is_new and self.host.journal.has_ended(self.host.name, work.id, work.token):
                await self._tell_that_it_ended(work)
            else:
                await self._start(work)
        elif answer.outcome is Outcome.ENDING:
            await self.end(work)
        elif is_new:
            await self.host.journal.write_forgotten(self.host.name, work.id)
        else:
            await self.lose(work)

    async def _tell_that_it_ended(self, work: HeldWork) -> None:
        """The store holds what it had been told is gone: it has lost writes. Attesting anew ends the claim again."""
        await self.host.journal.write_forgotten(self.host.name, work.id)
        await self.line.ask(self.host.begin_new_epoch)

    async def _start(self, work: HeldWork) -> None:
        if not work.is_running:
            if not self._fits(work):
                await self._fail(work, "the host cannot hold it", began=False)
                return
            try:
                # Without a hook there is nothing to start, and nothing to keep of it.
                work = work if isinstance(self.hook, NoHook) else await self._run_start(work)
            except HookFailed as error:
                await self._fail(work, str(error), began=not isinstance(error, HookNotRun))
                return
            except _Ended as ended:
                await (self.end(work) if ended.outcome is Outcome.ENDING else self.lose(work))
                return
        answer = await self._say(lambda: self.host.cell.confirm(self.host.name, work.id, work.token))
        if answer.outcome in (Outcome.OK, Outcome.SAME):
            self._write(dataclasses.replace(work, state=ClaimStatus.ACTIVE))
        elif answer.outcome is Outcome.ENDING:
            await self.end(work)
        else:
            await self.lose(work)

    async def _run_start(self, work: HeldWork) -> HeldWork:
        work = dataclasses.replace(work, state=ClaimStatus.STARTING)
        self._write(work)
        output = await self._renewing(work, self._run_hook(Verb.START, work))
        work = dataclasses.replace(work, is_running=True, named=named_in(output) if output else None)
        # Durable before the store hears of it: what is active is not started again after a crash.
        await self._write(work)
        return work

    async def _renewing(self, work: HeldWork, hook: Coroutine[None, None, bytes]) -> bytes:
        running = asyncio.create_task(hook)
        try:
            while not (await asyncio.wait([running], timeout=self._lease_s() / BEATS_IN_LEASE))[0]:
                answer = await self._say(
                    lambda: self.host.cell.renew(self.host.name, work.id, work.token, self._lease_s())
                )
                if answer.outcome not in (Outcome.OK, Outcome.SAME):
                    raise _Ended(answer.outcome)
            return running.result()
        finally:
            await end(running)

    async def _fail(self, work: HeldWork, reason: str, began: bool) -> None:
        """Clean up, and tell the store. Freed at once only where nothing is left of it, else when it is stopped."""
        _log.warning("a claim could not be started", host=self.host.name, claim=work.id, reason=reason)
        # Not only this process: one before it may have begun to start the work.
        may_be_there = began or work.state is not ClaimStatus.CLAIMED
        is_gone = not may_be_there or await self._stop_once(work)
        answer = await self._say(lambda: self.host.cell.fail(self.host.name, work.id, work.token, by_host=is_gone))
        if is_gone:
            await self._bury(work, answer)
        elif answer.outcome is Outcome.ENDING:
            await self.end(work)
        else:
            await self.lose(work)

    async def end(self, work: HeldWork, entry_id: str = "") -> None:
        """Stop the work, and tell the store that it is gone and what is in use now."""
        work = dataclasses.replace(self.held.get(work.id) or work, state=ClaimStatus.ENDING)
        # Durable first: after a crash, the new epoch must not hear of it as active.
        await self._write(work)
        await self._stop(work)
        external = await self.host.look_without(work.id)
        answer = await self._say(
            lambda: self.host.cell.gone(self.host.name, work.id, work.token, Why.RELEASED, external, entry_id)
        )
        if answer.outcome is Outcome.OK:
            self.host.note_external(external)
        await self._bury(work, answer)

    async def lose(self, work: HeldWork) -> None:
        """Stop the work of a claim that the store has ended or given to another host: there is nobody to tell."""
        _log.info("a claim has ended without this host", host=self.host.name, claim=work.id)
        await self._stop(work)
        await self.host.journal.write_ended(self.host.name, work.id, work.token, self.host.now_ms)

    async def ask_about(self, work: HeldWork) -> None:
        """Ask about a claim that only the journal holds. A plain read found none, but only a script may stop work."""
        answer = await self._say(lambda: self.host.cell.renew(self.host.name, work.id, work.token, self._lease_s()))
        if answer.outcome in _ENDED:
            await self.lose(work)
        elif answer.outcome is Outcome.ENDING:
            await self.end(work)

    async def discard(self, entry: InboxEntry) -> None:
        """Take out a hint whose claim has ended: accept does that. Should it not have ended, comparing finds it."""
        await self._say(
            lambda: self.host.cell.accept(self.host.name, entry.claim_id, entry.token, self._lease_s(), entry.entry_id)
        )

    # -- parts of steps

    async def _say(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask until the store answers in the epoch that this host has attested to."""
        while True:
            await self.host.opened.wait()
            answer = await self.line.ask(call)
            if answer.epoch == self.host.epoch and answer.outcome is not Outcome.ATTEST:
                self.host.hears(answer.epoch, answer.now_ms)
                return answer
            self.host.hears(answer.epoch, answer.now_ms, attest=answer.epoch == self.host.epoch)
            await asyncio.sleep(random.uniform(0.5, 1.5) * ASK_AGAIN_S)

    async def _stop(self, work: HeldWork) -> None:
        """Run the stop hook until it succeeds: as long as it does not, the work may be there."""
        pause_s = FIRST_RETRY_S
        while not await self._stop_once(work):
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(pause_s * 2, LONGEST_RETRY_S)

    async def _stop_once(self, work: HeldWork) -> bool:
        try:
            await self._run_hook(Verb.STOP, work)
        except HookFailed as error:
            _log.error("work could not be stopped", host=self.host.name, claim=work.id, reason=str(error))
            return False
        return True

    async def _run_hook(self, verb: Verb, work: HeldWork) -> bytes:
        async with self.hooks:
            return await self.hook.run(Order(verb, self.host.cell.name, self.host.name, work))

    async def _bury(self, work: HeldWork, answer: Answer) -> None:
        await self.host.journal.write_ended(self.host.name, work.id, work.token, answer.now_ms)

    def _fits(self, work: HeldWork) -> bool:
        """Whether what the host has, as last looked at, is enough for this claim and all others that it holds.

        Shared pools are no part of a host: only the store knows what else is taken from them.
        """
        if self.host.report is None:
            return False
        slots = self.host.report.slots()
        others = [one.amounts for one in self.held.values() if one.id != work.id]
        for slot, amount in work.amounts.items():
            if slot.startswith(SHARED_POOL):
                continue
            inventory = slots.get(slot)
            held = sum(amounts.get(slot, 0) for amounts in others)
            if inventory is None or held + amount > inventory.capacity:
                return False
        return True

    def _write(self, work: HeldWork) -> Awaitable[None]:
        return self.host.journal.write_held(self.host.name, work)

    def _lease_s(self) -> int:
        return self.host.settings.lease_s
