"""The context of the steps of a placement: calls to the store, writes to the journal, runs of a hook."""

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from redsched import aio, logs, tracing
from redsched.agent.backoff import StoreBackoff
from redsched.agent.claims.capacity_check import missing_capacity
from redsched.agent.hooks.base import Hook, HookFailed, HookRequest, NoHook, Verb
from redsched.agent.host_session import Host
from redsched.agent.journal.schema import JournalEntry
from redsched.errors import RedschedError
from redsched.model import Amounts, Claim, ClaimStatus, EndReason, Placement
from redsched.model.tokens import is_newer_token
from redsched.origin import Origin
from redsched.store.agent_calls import AgentCall, ClaimsCall, StopFailedCall, TextsCall
from redsched.store.codec.claim_codec import counting_objects
from redsched.store.codec.claim_fields import alternates_from, alternates_name, record_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult

FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 60.0
"""Pauses between retries of a stop hook. It is retried until it succeeds, because the work is still there."""

ASK_AGAIN_S = 0.05
"""Pause before a retry in the new epoch, so that a stale replica of the store is not queried in a busy loop."""

LOOK_AGAIN_S = 0.1
"""Pause before checking again whether claims that may have ended have freed room."""

DONE_BY = {Verb.START: "work started", Verb.STOP: "work stopped", Verb.RESIZE: "work resized"}
"""The log events of hooks that have succeeded."""

_log = logs.get_logger("redsched.agent")


@dataclass(frozen=True, slots=True)
class LifecycleContext:
    """What the steps of one host's claims share. `hooks` limits how many hooks run at once in this process."""

    host: Host
    backoff: StoreBackoff
    hook: Hook
    hooks: asyncio.Semaphore
    conflicts: set[str] = field(default_factory=set)
    """Ids of local work that other claims already have; each is logged once."""

    @property
    def held(self) -> dict[str, JournalEntry]:
        """The placements in this host's journal, by `placed`."""
        return self.host.journal.pages[self.host.name].held

    def named(self, work: JournalEntry) -> tuple[str, str, str]:
        """Return the host, claim and token of a placement, with which calls about it begin."""
        return self.host.name, work.id, work.token

    async def call(self, make: Callable[[], AgentCall[ScriptResult]], objects: Collection[str] = ()) -> ScriptResult:
        """Call until the store replies in the epoch that this host has attested to; it may have to settle first.

        `make` returns the call, which may name that epoch. `objects` as in `CellStore.call`.
        """
        while True:
            await self.host.opened.wait()
            answer = await self.backoff.call(lambda: self.host.cell.call(make(), objects))
            is_here = answer.epoch == self.host.epoch
            attest = is_here and answer.outcome is Outcome.NOT_ATTESTED
            self.host.record_reply(answer.epoch, answer.now_ms, attest=attest)
            if is_here and not attest and answer.outcome is not Outcome.SETTLING:
                return answer
            await asyncio.sleep(random.uniform(0.5, 1.5) * ASK_AGAIN_S)

    async def resized_meanwhile(self, work: JournalEntry) -> JournalEntry | None:
        """Return the placement with its newer token, once that is durable; None if the store has no newer token.

        Scripts return STALE both for a placement that has been resized meanwhile and for one that is gone. A plain read
        is sufficient reason to let its work continue, but only the outcome of a script is reason to stop it.
        """
        claim = await self.read_claim(work.id)
        if claim is None:
            return None
        found = {one.placed: one for one in placements_here(claim, self.host.name)}.get(work.placed)
        if found is None or not is_newer_token(found.token, work.token):
            return None
        return await self.adopt(work, work_of(claim, found))

    async def read_claim(self, claim_id: str) -> Claim | None:
        """Return a claim, if it has a placement on this host."""
        call = ClaimsCall((self.host.name,), (claim_id,))
        return (await self.backoff.call(lambda: self.host.cell.call(call))).get(claim_id)

    async def adopt(self, known: JournalEntry, resized: JournalEntry) -> JournalEntry:
        """Write a placement's newer token to the journal. Its work still has the amounts from before the resizes."""
        before = (known.before or known.amounts) if resized.resizing_to else {}
        work = dataclasses.replace(
            known, token=resized.token, record=resized.record, before=before, origin=resized.origin
        )
        await self.write(work)
        return work

    async def write_with_texts(self, work: JournalEntry) -> None:
        """Write a placement and the texts that its claim refers to to the journal, and wait until they are durable.

        If the store loses the texts, they are restored from the journal.
        """
        durable = self.write(work)
        # The alternates in the journal may be those of an earlier claim with this id.
        needed = [one for one in work.texts if one not in self.host.journal.texts or one == alternates_name(work.id)]
        if needed:
            call = TextsCall(self.host.name, work.id, tuple(needed))
            found = await self.backoff.call(lambda: self.host.cell.call(call))
            for name, text in found.texts.items():
                await self.host.journal.write_text(name, text)
        await durable

    async def stop(self, work: JournalEntry) -> None:
        """Run the stop hook until it succeeds, because the work may be there until then, and report each failure."""
        pause_s = FIRST_RETRY_S
        while (failure := await self._try_to_stop(work)) is not None:
            with suppress(RedschedError):  # without the store, the next failure is reported
                work = await self._report_stop_failed(work, failure)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(pause_s * 2, LONGEST_RETRY_S)

    async def _report_stop_failed(self, work: JournalEntry, reason: str) -> JournalEntry:
        """Report why work could not be stopped. Returns the placement, with its newer token if it has been resized."""
        answer = await self.host.cell.call(StopFailedCall(*self.named(work), reason))
        if answer.outcome is not Outcome.STALE or (resized := await self.resized_meanwhile(work)) is None:
            return work
        await self.host.cell.call(StopFailedCall(*self.named(resized), reason))
        return resized

    async def stop_once(self, work: JournalEntry) -> bool:
        """Run the stop hook once and return whether it succeeded."""
        return await self._try_to_stop(work) is None

    async def _try_to_stop(self, work: JournalEntry) -> str | None:
        """Run the stop hook once, and return why it has failed; None if it has not."""
        try:
            await self.run_hook(Verb.STOP, work)
        except HookFailed as error:
            _log.error("work could not be stopped", host=self.host.name, claim=work.id, reason=str(error))
            return error.reason
        return None

    async def run_hook(self, verb: Verb, work: JournalEntry) -> bytes:
        """Run the hook of this host and return its output. Raises HookFailed."""
        async with self.hooks:
            name, texts = alternates_name(work.id), self.host.journal.texts
            # The journal may still have the list of an earlier claim with this id.
            alternates = alternates_from(texts.get(name, "") if name in work.texts else "")
            payload, devices = self.host.journal.payload_of(work), self.host.journal.devices_of(self.host.name, work)
            began_s = aio.now_s()
            with tracing.span("redsched.hook", verb=verb.value, claim_id=work.id, host=self.host.name):
                cell, host, traceparent = self.host.cell.name, self.host.name, tracing.traceparent()
                order = HookRequest(verb, cell, host, work, alternates, payload, devices, traceparent)
                output = await self.hook.run(order)
        if not isinstance(self.hook, NoHook):
            took_s = round(aio.now_s() - began_s, 3)
            _log.info(DONE_BY[verb], host=self.host.name, claim=work.id, took_s=took_s)
        return output

    async def write_tombstone(self, work: JournalEntry, end_reason: str = "") -> None:
        """Write the tombstone of a placement to the journal."""
        await self.host.journal.write_ended(self.host.name, work, end_reason)

    async def missing_capacity(self, work: JournalEntry, amounts: Amounts) -> str:
        """Return what the host lacks to hold these amounts beside its other claims, as text; '' for nothing.

        The store reassigns room as soon as this host reports that work is gone, while the host may still be waiting for
        the reply, or may have died before it was journaled. The store also reassigns the room of a released claim that
        this host has journaled but not accepted yet. So wait, for half a lease at most, until both kinds have ended
        here too.
        """
        until = aio.now_s() + self.lease_s / 2
        while True:
            report = await self.host.monitor.observe_again(
                without=work.placed if work.state is ClaimStatus.CLAIMED else ""
            )
            others = [one for one in self.held.values() if one.placed != work.placed]
            reason = missing_capacity(report, [one.amounts for one in others], amounts)
            staying = [one.amounts for one in others if one.state not in (ClaimStatus.CLAIMED, ClaimStatus.ENDING)]
            if not reason or missing_capacity(report, staying, amounts) or aio.now_s() >= until:
                return reason
            await asyncio.sleep(LOOK_AGAIN_S)

    def write(self, work: JournalEntry) -> Awaitable[None]:
        """Write a placement to the journal. Await the result to know that it is durable."""
        return self.host.journal.write_held(self.host.name, work, self.host.runtime_left_ms(work))

    @property
    def lease_s(self) -> int:
        """The duration of the leases that this host renews, in seconds."""
        return self.host.settings.lease_s


def work_of(claim: Claim, placement: Placement) -> JournalEntry:
    """Return the journal entry of a placement that the host has yet to accept, or that its new journal lacks."""
    return JournalEntry(
        claim.claim_id,
        placement.placed,
        placement.token,
        placement.root,
        record_of(claim.view(placement)),
        # STARTING is kept: the work may be running, and a release would free a CLAIMED placement at once.
        state=ClaimStatus.STARTING if placement.state is ClaimStatus.STARTING else ClaimStatus.CLAIMED,
        moves=_moved_from(claim, placement),
        origin=Origin(claim.actor, claim.request_id),
    )


def placements_here(claim: Claim, host: str) -> list[Placement]:
    """Return a claim's placements on one host."""
    return [one for one in claim.placements if one.host == host]


def is_of_failed_gang(claim: Claim | None, placement: Placement | None) -> bool:
    """Return whether a placement is ending because its gang failed. Claims of a complete gang do not name a gang."""
    return claim is not None and placement is not None and claim.gang != "" and placement.end_reason is EndReason.FAILED


def _moved_from(claim: Claim, placement: Placement) -> dict[str, str]:
    """Return `host` and `token` of the placement that this one replaces in a move; {} if it is not a move."""
    source = next((one for one in claim.placements if one.token == placement.based_on), None)
    if source is None or source.state is not ClaimStatus.ACTIVE:
        return {}
    return {"host": source.host, "token": source.token}


def objects_of(work: JournalEntry) -> tuple[str, ...]:
    """Return the names of the objects that count a claim besides its host: passing them saves a second call."""
    return counting_objects(work.group, work.amounts, work.gang, work.record.get("project", ""))
