"""What every step of a claim on its host is made of: asking the store, writing the journal, running a hook."""

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from redsched import tasks
from redsched.agent.double_check import lacking
from redsched.agent.epochs import is_newer_token
from redsched.agent.hooks import Hook, HookFailed, Order, Verb
from redsched.agent.host import Host
from redsched.agent.journal_schema import HeldWork, Succession
from redsched.agent.line import Line
from redsched.model import Claim, ClaimStatus
from redsched.store import Answer, Outcome, drawn_on

FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 60.0
"""Pauses between the tries of a hook that fails to stop work. It must succeed some day: the work is still there."""

ASK_AGAIN_S = 0.05
"""Before asking again in the new epoch, so that an old copy of the store is not asked in circles."""

LOOK_AGAIN_S = 0.1
"""Before looking again whether claims that are ending have made room."""

_log = structlog.get_logger("redsched.agent")


@dataclass(frozen=True, slots=True)
class StepParts:
    """What one host needs for its claims. `hooks` bounds how many hooks run at once in this process."""

    host: Host
    line: Line
    hook: Hook
    hooks: asyncio.Semaphore
    conflicts: set[str] = field(default_factory=set)
    """Ids of local work that other claims have: each is logged once."""

    @property
    def held(self) -> dict[str, HeldWork]:
        """The claims in this host's journal."""
        return self.host.journal.pages[self.host.name].held

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

    async def _placed_anew(self, work: HeldWork) -> HeldWork | None:
        """The claim by its newer token, once that is durable; None where the store knows no later placing of it here.

        STALE is all that a script says of a claim that was resized meanwhile. A plain read is enough to go on with its
        work; only a script may stop it.
        """
        read = await self.line.ask(lambda: self.host.cell.read_claims([work.id]))
        claim = read.get(work.id)
        is_here = claim is not None and claim.host == self.host.name and claim.state is not ClaimStatus.ENDED
        if claim is None or not is_here or not is_newer_token(claim.token, work.token):
            return None
        return await self._adopt(work, work_of(claim))

    async def _adopt(self, known: HeldWork, placing: HeldWork) -> HeldWork:
        """Hold a claim by its newer placing, durably. Its work has what it had before the first resize."""
        before = (known.before or known.amounts) if placing.wanted else {}
        work = dataclasses.replace(
            known, token=placing.token, amounts=placing.amounts, wanted=placing.wanted, before=before
        )
        await self._write(work)
        return work

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

    async def _lacks(self, work: HeldWork) -> str:
        """What the host lacks for this claim beside all that runs there, in words; '' when it can hold it.

        The store gives room away as soon as it has this host's word that work is gone; the host may still wait for the
        answer, or have died before it was journaled. So claims that are ending are waited for, half a lease at most.
        """
        until = tasks.now_s() + self._lease_s() / 2
        while True:
            report = await self.host.sight.look_again(without=work.id if work.state is ClaimStatus.CLAIMED else "")
            others = [one for one in self.held.values() if one.id != work.id]
            reason = lacking(report, [one.amounts for one in others], work.amounts)
            staying = [one.amounts for one in others if one.state is not ClaimStatus.ENDING]
            if not reason or lacking(report, staying, work.amounts) or tasks.now_s() >= until:
                return reason
            await asyncio.sleep(LOOK_AGAIN_S)

    def _write(self, work: HeldWork) -> Awaitable[None]:
        return self.host.journal.write_held(self.host.name, work)

    def _lease_s(self) -> int:
        return self.host.settings.lease_s


def work_of(claim: Claim) -> HeldWork:
    """A claim of the store as one that its host is still to take up."""
    return HeldWork(
        claim.id,
        claim.token,
        claim.amounts,
        project=claim.project,
        consumer=claim.consumer,
        digest=claim.digest,
        group=claim.group,
        counted=claim.counted,
        wanted=claim.wanted,
        succession=Succession(claim.origin, claim.former, claim.former_host, claim.former_token, claim.former_why),
        gang=claim.gang,
    )


def things_of(work: HeldWork) -> tuple[str, ...]:
    """What a claim counts in beside its host, as the store's calls name it: knowing it saves them a second one."""
    return drawn_on(work.group, work.amounts, work.gang, work.project)
