"""The claims of one host: what is asked for by hints and comparisons, and one task for each claim that is acted on."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from redsched.agent.collector import LocalWork
from redsched.agent.epochs import is_newer_token
from redsched.agent.journal_schema import HeldWork
from redsched.agent.local_steps import held_local
from redsched.agent.step_parts import work_of
from redsched.agent.work_ended import WorkEndedSteps
from redsched.model import Claim, ClaimStatus, OnExit
from redsched.store import InboxEntry
from redsched.tasks import end, end_all

ACTIVE = ClaimStatus.ACTIVE
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

    steps: WorkEndedSteps
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
            held = self.steps.held.get(entry.claim_id)
            is_late = held is not None and is_newer_token(held.token, entry.token)
            if entry.op == "end" and not is_late:
                self.end(held or _unknown_work(entry, claim), entry.entry_id)
            elif (
                not is_late
                and claim is not None
                and claim.state is not ClaimStatus.ENDED
                and claim.token == entry.token
            ):
                # To be resized is to be taken up by a newer token.
                self.take_up(work_of(claim), entry.entry_id)
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

    def find_local(self, found: Sequence[LocalWork]) -> None:
        """Claim for local work that runs here now, which is all of `found`, and give back what does not any more."""
        if not self.steps.host.epoch:
            return
        for one in found:
            work = self.steps.held.get(one.id)
            # Under the id of a claim that was made for this host, it is that claim's work.
            if work is None or (work.is_local and work.state is ACTIVE and work != held_local(one, work.token)):
                self._do(one.id, work.token if work else "", self.steps.hold_local(one))
        runs = {one.id for one in found}
        for work in [*self.steps.held.values()]:
            if work.is_local and work.id not in runs:
                self._do(work.id, work.token, self.steps.end_local(work), is_end=True)

    def end(self, work: HeldWork, entry_id: str = "") -> None:
        """Begin to end a claim, unless that is being done. Taking it up is broken off."""
        self._do(work.id, work.token, self.steps.end(work, entry_id), is_end=True)

    def at_rest(self) -> list[HeldWork]:
        """The claims that nothing is being done about; none while this host is not open."""
        if not self.steps.host.epoch:
            return []
        return [one for one in self.steps.held.values() if one.id not in self._doing]

    def find_ended(self, work: HeldWork, text: str) -> None:
        """Begin what is due about work that has ended by itself, unless its claim has changed since that was seen."""
        if self.steps.host.epoch and work.id not in self._doing and self.steps.held.get(work.id) is work:
            # What is kept goes on, and is ended like any other claim.
            is_end = work.on_exit is not OnExit.KEEP
            self._do(work.id, work.token, self.steps.work_ended(work, text), is_end)

    async def close(self) -> None:
        """Break off everything. The journal knows where to go on."""
        await end_all([doing.task for doing in self._doing.values()])

    # -- one task for each claim

    def _do(self, claim_id: str, token: str, steps: Coroutine[None, None, None], is_end: bool = False) -> None:
        before = self._doing.get(claim_id)
        # A start or a resize is never broken off for another one: it learns from the store that its token is old.
        if before is not None and (before.is_end or not is_end):
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
            self.end(work or work_of(claim))
        elif claim.state is ClaimStatus.ENDED or claim.host != self.steps.host.name:
            return
        elif work is None or _asks(claim, work):
            self.take_up(work_of(claim))


def _asks(claim: Claim, work: HeldWork) -> bool:
    """Whether something is to be done about a claim: it is not all done, or its token is newer than the journal's."""
    if claim.token != work.token:
        return is_newer_token(claim.token, work.token)
    return work.state is not ACTIVE or claim.state is not ACTIVE or bool(work.wanted or claim.wanted)


async def _after(before: _Doing | None, steps: Coroutine[None, None, None]) -> None:
    if before is not None:
        await end(before.task)
    await steps


def _unknown_work(entry: InboxEntry, claim: Claim | None) -> HeldWork:
    """A claim to be ended that the journal does not know: its hook is asked to stop it all the same."""
    return work_of(claim) if claim is not None else HeldWork(entry.claim_id, entry.token, {})
