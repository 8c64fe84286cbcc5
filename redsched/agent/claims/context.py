"""What every step of a placement on its host is made of: asking the store, writing the journal, running a hook."""

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from redsched import aio
from redsched.agent.backoff import StoreBackoff
from redsched.agent.claims.capacity_check import lacking
from redsched.agent.hooks.base import Hook, HookFailed, HookRequest, Verb
from redsched.agent.host_session import Host
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.tokens import is_newer_token
from redsched.model import Amounts, Claim, ClaimStatus, EndReason, Placement
from redsched.store.codec.claim_codec import drawn_on
from redsched.store.codec.claim_fields import record_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult

FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 60.0
"""Pauses between the tries of a hook that fails to stop work. It must succeed some day: the work is still there."""

ASK_AGAIN_S = 0.05
"""Before asking again in the new epoch, so that an old copy of the store is not asked in circles."""

LOOK_AGAIN_S = 0.1
"""Before looking again whether claims that are ending have made room."""

_log = structlog.get_logger("redsched.agent")


@dataclass(frozen=True, slots=True)
class LifecycleContext:
    """What one host needs for its claims. `hooks` bounds how many hooks run at once in this process."""

    host: Host
    line: StoreBackoff
    hook: Hook
    hooks: asyncio.Semaphore
    conflicts: set[str] = field(default_factory=set)
    """Ids of local work that other claims have: each is logged once."""

    @property
    def held(self) -> dict[str, JournalEntry]:
        """The placements in this host's journal, by `placed`."""
        return self.host.journal.pages[self.host.name].held

    async def say(self, call: Callable[[], Awaitable[ScriptResult]]) -> ScriptResult:
        """Ask until the store answers in the epoch that this host has attested to."""
        while True:
            await self.host.opened.wait()
            answer = await self.line.ask(call)
            if answer.epoch == self.host.epoch and answer.outcome is not Outcome.NOT_ATTESTED:
                self.host.hears(answer.epoch, answer.now_ms)
                return answer
            self.host.hears(answer.epoch, answer.now_ms, attest=answer.epoch == self.host.epoch)
            await asyncio.sleep(random.uniform(0.5, 1.5) * ASK_AGAIN_S)

    async def resized_meanwhile(self, work: JournalEntry) -> JournalEntry | None:
        """Return the placement by its newer token, once that is durable; None where the store has no newer one.

        STALE is all that a script answers about a placement that was resized meanwhile, and about one that is gone. A
        plain read is enough to go on with its work; only a script may stop it.
        """
        read = await self.line.ask(lambda: self.host.cell.claims.read([work.id]))
        if work.id not in read:
            return None
        found = {one.placed: one for one in placements_here(read[work.id], self.host.name)}.get(work.placed)
        if found is None or not is_newer_token(found.token, work.token):
            return None
        return await self.adopt(work, work_of(read[work.id], found))

    async def adopt(self, known: JournalEntry, resized: JournalEntry) -> JournalEntry:
        """Hold a placement by its newer token, durably. Its work has what it had before the first resize."""
        before = (known.before or known.amounts) if resized.resizing_to else {}
        work = dataclasses.replace(known, token=resized.token, record=resized.record, before=before)
        await self.write(work)
        return work

    async def keep_request(self, digest: str) -> None:
        """Read a claim's request, unless it is known: this host gives it back to a store that has lost it."""
        if digest and digest not in self.host.journal.requests:
            text = await self.line.ask(lambda: self.host.cell.requests.get(digest))
            if text:
                await self.host.journal.write_request(digest, text)

    async def stop(self, work: JournalEntry) -> None:
        """Run the stop hook until it succeeds: as long as it does not, the work may be there."""
        pause_s = FIRST_RETRY_S
        while not await self.stop_once(work):
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(pause_s * 2, LONGEST_RETRY_S)

    async def stop_once(self, work: JournalEntry) -> bool:
        """Run the stop hook once. Return whether it has succeeded."""
        try:
            await self.run_hook(Verb.STOP, work)
        except HookFailed as error:
            _log.error("work could not be stopped", host=self.host.name, claim=work.id, reason=str(error))
            return False
        return True

    async def run_hook(self, verb: Verb, work: JournalEntry) -> bytes:
        """Run the hook of this host and return its output. Raises HookFailed."""
        async with self.hooks:
            return await self.hook.run(HookRequest(verb, self.host.cell.name, self.host.name, work))

    async def bury(self, work: JournalEntry, answer: ScriptResult, end_reason: str = "") -> None:
        """Write the tombstone of a placement into the journal."""
        await self.host.journal.write_ended(self.host.name, work, answer.now_ms, end_reason)

    async def lacks(self, work: JournalEntry, amounts: Amounts) -> str:
        """Return what the host lacks to hold these amounts beside all else that runs there, in words; '' for nothing.

        The store gives room away as soon as it has this host's word that work is gone; the host may still wait for the
        answer, or have died before it was journaled. So claims that are ending are waited for, half a lease at most.
        """
        until = aio.now_s() + self.lease_s / 2
        while True:
            report = await self.host.sight.look_again(without=work.placed if work.state is ClaimStatus.CLAIMED else "")
            others = [one for one in self.held.values() if one.placed != work.placed]
            reason = lacking(report, [one.amounts for one in others], amounts)
            staying = [one.amounts for one in others if one.state is not ClaimStatus.ENDING]
            if not reason or lacking(report, staying, amounts) or aio.now_s() >= until:
                return reason
            await asyncio.sleep(LOOK_AGAIN_S)

    def write(self, work: JournalEntry) -> Awaitable[None]:
        """Hold a placement in the journal. Await the result to know that it is durable."""
        return self.host.journal.write_held(self.host.name, work)

    @property
    def lease_s(self) -> int:
        """How long a lease is that this host renews."""
        return self.host.settings.lease_s


def work_of(claim: Claim, placement: Placement) -> JournalEntry:
    """Return one of a claim's placements as its host is still to take it up, or, with a new journal, to start again."""
    return JournalEntry(
        claim.id,
        placement.placed,
        placement.token,
        placement.root,
        record_of(claim.view(placement)),
        # Its work may run: what is called claimed is freed at once by a release.
        state=ClaimStatus.STARTING if placement.state is ClaimStatus.STARTING else ClaimStatus.CLAIMED,
        moves=_moved_from(claim, placement),
    )


def placements_here(claim: Claim, host: str) -> list[Placement]:
    """Return a claim's placements on a host."""
    return [one for one in claim.placements if one.host == host]


def has_fallen(claim: Claim | None, placement: Placement | None) -> bool:
    """Return whether a placement is ending because its gang failed. The claim of a complete gang names none then."""
    return claim is not None and placement is not None and claim.gang != "" and placement.end_reason is EndReason.FAILED


def _moved_from(claim: Claim, placement: Placement) -> dict[str, str]:
    """Return host and token of the placement that this one is to replace in a move; nothing where it is no move."""
    source = next((one for one in claim.placements if one.token == placement.based_on), None)
    if source is None or source.state is not ClaimStatus.ACTIVE:
        return {}
    return {"host": source.host, "token": source.token}


def objects_of(work: JournalEntry) -> tuple[str, ...]:
    """Return what a claim counts in beside its host, as the store's calls name it: knowing it saves a second call."""
    return drawn_on(work.group, work.amounts, work.gang, work.record.get("project", ""))
