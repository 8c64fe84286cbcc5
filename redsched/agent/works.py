"""The claims of one host: what is asked for by hints and comparisons, and one task for each claim that is acted on."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from redsched.agent.journal_schema import HeldWork
from redsched.agent.steps import Steps
from redsched.model import Claim, ClaimStatus
from redsched.store import InboxEntry
from redsched.tasks import end, end_all

_log = structlog.get_logger("redsched.agent")


@dataclass(slots=True)
class _Doing:
    task: asyncio.Task[None]
    token: str
    is_end: bool


@dataclass(slots=True, eq=False)
class Works:
    """The claims of one host that something is being done about.

    `on_missed` is called when something was asked for while its claim was busy: the inbox is to be read again.
    """

    steps: Steps
    on_missed: Callable[[], None]
    _doing: dict[str, _Doing] = field(default_factory=dict)
    _missed: bool = False

    # -- what is asked for

    def read_inbox(self, entries: Iterable[InboxEntry], claims: Mapping[str, Claim]) -> None:
        """Do what hints ask for. `claims` are those that they name, as just read."""
        for entry in entries:
            # Stamped with another epoch: it was written by a store that this host has not attested to, or has left.
            if entry.epoch != self.steps.host.epoch:
                continue
            claim = claims.get(entry.claim_id)
            if entry.op == "end":
                self.end(self.steps.held.get(entry.claim_id) or _unknown_work(entry, claim), entry.entry_id)
            elif claim is not None and claim.state is not ClaimStatus.ENDED and claim.token == entry.token:
                self.take_up(_as_work(claim), entry.entry_id)
            else:
                self._do(entry.claim_id, entry.token, self.steps.discard(entry))

    def compare(self, ids: set[str], claims: Mapping[str, Claim]) -> None:
        """Compare the journal with what the store says: `ids` on this host, and those claims.

        Also what goes on with that which an earlier process, or an earlier epoch, has left half done.
        """
        if not self.steps.host.epoch:
            return
        for claim_id in ids & claims.keys():
            self._compare_one(claims[claim_id])
        for claim_id in self.steps.held.keys() - ids:
            work = self.steps.held[claim_id]
            self._do(claim_id, work.token, self.steps.ask_about(work))

    def drop(self, ids: Iterable[str]) -> None:
        """Stop work that the store has given to another host, or has ended while it could not say so."""
        for claim_id in ids:
            work = self.steps.held.get(claim_id)
            if work is not None:
                self._do(claim_id, work.token, self.steps.lose(work), is_end=True)

    def take_up(self, work: HeldWork, entry_id: str = "") -> None:
        """Begin to take a claim up, unless that is being done."""
        self._do(work.id, work.token, self.steps.take_up(work, entry_id))

    def end(self, work: HeldWork, entry_id: str = "") -> None:
        """Begin to end a claim, unless that is being done. Taking it up is broken off."""
        self._do(work.id, work.token, self.steps.end(work, entry_id), is_end=True)

    async def close(self) -> None:
        """Break off everything. The journal knows where to go on."""
        await end_all([doing.task for doing in self._doing.values()])

    # -- one task for each claim

    def _do(self, claim_id: str, token: str, steps: Coroutine[None, None, None], is_end: bool = False) -> None:
        before = self._doing.get(claim_id)
        if before is not None and (before.is_end or (before.token == token and not is_end)):
            steps.close()
            self._missed |= before.token != token
            return
        task = asyncio.create_task(_after(before, steps), name=f"claim {claim_id}")
        doing = self._doing[claim_id] = _Doing(task, token, is_end)
        # A task that is cancelled before its first step never comes to await `steps`.
        task.add_done_callback(lambda _: steps.close())
        task.add_done_callback(lambda _: self._done(claim_id, doing))

    def _done(self, claim_id: str, doing: _Doing) -> None:
        if self._doing.get(claim_id) is doing:
            del self._doing[claim_id]
        if not doing.task.cancelled() and (error := doing.task.exception()) is not None:
            _log.error("a claim's task failed", host=self.steps.host.name, claim=claim_id, error=repr(error))
        if self._missed:
            self._missed = False
            self.on_missed()

    def _compare_one(self, claim: Claim) -> None:
        work = self.steps.held.get(claim.id)
        # The journal's word too: it says so only because the store once did, and the work may be stopped already.
        if claim.state is ClaimStatus.ENDING or (work is not None and work.state is ClaimStatus.ENDING):
            self.end(work or _as_work(claim))
        elif claim.state is ClaimStatus.ENDED or claim.host != self.steps.host.name:
            return
        elif (
            work is None
            or work.token != claim.token
            or not (work.state is ClaimStatus.ACTIVE and claim.state is ClaimStatus.ACTIVE)
        ):
            self.take_up(_as_work(claim))


async def _after(before: _Doing | None, steps: Coroutine[None, None, None]) -> None:
    if before is not None:
        await end(before.task)
    await steps


def _as_work(claim: Claim) -> HeldWork:
    return HeldWork(
        claim.id,
        claim.token,
        claim.amounts,
        project=claim.project,
        consumer=claim.consumer,
        digest=claim.digest,
        group=claim.group,
        counted=claim.counted,
    )


def _unknown_work(entry: InboxEntry, claim: Claim | None) -> HeldWork:
    """A claim to be ended that the journal does not know: its hook is asked to stop it all the same."""
    return _as_work(claim) if claim is not None else HeldWork(entry.claim_id, entry.token, {})
