"""The placements of one host: act on notifications and comparisons, with at most one task for each placement."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from redsched import logs, origin, tracing
from redsched.agent.claims.context import is_of_failed_gang, placements_here, work_of
from redsched.agent.claims.local import updated_entry
from redsched.agent.claims.steps import ClaimSteps
from redsched.agent.collectors.base import LocalWork
from redsched.agent.host_session import Host
from redsched.agent.journal.schema import JournalEntry
from redsched.aio import end, end_all
from redsched.model import Claim, ClaimStatus, EndReason, OnExit, Placement
from redsched.model.tokens import is_newer_token
from redsched.origin import UNKNOWN, Origin, agent_of
from redsched.store.codec.replies import InboxEntry

ACTIVE = ClaimStatus.ACTIVE
_log = logs.get_logger("redsched.agent")


@dataclass(slots=True)
class _RunningTask:
    task: asyncio.Task[None]
    token: str
    is_end: bool


@dataclass(slots=True, eq=False)
class ClaimTasks:
    """The running tasks of one host's placements, by `placed`.

    `on_missed` is called when a task ends that was running when a notification for its placement came: the inbox must
    be read again.
    """

    steps: ClaimSteps
    on_missed: Callable[[], None]
    _running: dict[str, _RunningTask] = field(default_factory=dict)
    _missed: bool = False

    @property
    def _host(self) -> Host:
        return self.steps.context.host

    @property
    def _held(self) -> dict[str, JournalEntry]:
        return self.steps.context.held

    # -- requests

    def read_inbox(self, entries: Iterable[InboxEntry], claims: Mapping[str, Claim]) -> None:
        """Act on the notifications in an inbox. `claims` are the claims that they name, read after them."""
        for entry in entries:
            # Skip notifications of other epochs: this host has not attested to them, or has left them.
            if entry.epoch == self._host.epoch:
                self._follow(entry, claims.get(entry.claim_id))

    def compare(self, ids: Set[str], claims: Mapping[str, Claim]) -> None:
        """Compare the journal with the store: the `ids` of the claims on this host, and the `claims` with these ids.

        This also resumes steps that an earlier process or an earlier epoch has left unfinished.
        """
        if not self._host.epoch:
            return
        in_store = set()
        for claim_id in ids & claims.keys():
            for placement in placements_here(claims[claim_id], self._host.name):
                in_store.add(placement.placed)
                self._compare_one(claims[claim_id], placement)
        for placed in self._held.keys() - in_store:
            work = self._held[placed]
            self._start_task(work, self.steps.lifecycle.renew_missing(work))

    def drop(self, placed: Iterable[str]) -> None:
        """Stop the work of placements that the store freed while this host was not attested."""
        for name in placed:
            work = self._held.get(name)
            if work is not None:
                self._start_task(work, self.steps.ending.stop_freed(work), is_end=True)

    def bring_up(self, work: JournalEntry, entry_id: str = "") -> None:
        """Begin to accept and start a placement, or to resume that, unless a task for it is running."""
        self._start_task(work, self.steps.lifecycle.bring_up(work, entry_id))

    def find_local(self, found: Sequence[LocalWork]) -> None:
        """Create claims for all local work that runs now (`found`), and release local claims whose work is gone."""
        if not self._host.epoch:
            return
        held = {work.id: work for work in self._held.values()}
        for one in found:
            work = held.get(one.id)
            # Work under the id of a claim that was placed on this host belongs to that claim.
            if work is None or (work.is_local and work.state is ACTIVE and work != updated_entry(one, work)):
                # Work that was never claimed has no placement yet: its id is used as the name.
                self._start_task(work or JournalEntry(one.id, one.id, "", one.id), self.steps.local.claim(one))
        runs = {one.id for one in found}
        for work in [*self._held.values()]:
            if work.is_local and work.id not in runs:
                self._start_task(work, self.steps.local.release(work), is_end=True)

    def end(
        self, work: JournalEntry, entry_id: str = "", end_reason: EndReason | None = None, gang_failed: bool = False
    ) -> None:
        """Begin to end a placement, unless it is being ended. A task that is starting or resizing it is cancelled."""
        self._start_task(work, self.steps.ending.end(work, entry_id, end_reason, gang_failed), is_end=True)

    def end_overdue(self, placed: str) -> None:
        """Begin to end a placement whose work has run for as long as it may, unless it is being ended already.

        It needs no connection to the store. A placement that is `ending` keeps its reason: an earlier process may not
        have been able to stop its work. While the host is open, comparisons continue such an end.
        """
        work, before = self._held.get(placed), self._running.get(placed)
        if work is None or (before is not None and before.is_end):
            return
        is_new = work.state is not ClaimStatus.ENDING
        if not is_new and self._host.epoch:
            return
        if is_new:
            _log.warning("max_runtime_s has passed, stopping the work", host=self._host.name, claim=work.id)
        self.end(work, end_reason=EndReason.MAX_RUNTIME if is_new else None)

    def idle_placements(self) -> list[JournalEntry]:
        """Return the held placements without a running task; none while this host is not open."""
        held = self._held
        if not held or not self._host.epoch:
            return []
        return [one for one in held.values() if one.placed not in self._running]

    def find_ended(self, work: JournalEntry, text: str) -> None:
        """Begin to handle work that ended by itself, unless its placement has changed since that was observed."""
        if self._host.epoch and work.placed not in self._running and self._held.get(work.placed) is work:
            # A claim with `on_exit: keep` stays, so the task for it must not count as one that ends the claim.
            is_end = work.on_exit is not OnExit.KEEP
            self._start_task(work, self.steps.work_ended.apply_on_exit(work, text), is_end)

    async def close(self) -> None:
        """Cancel all tasks. The next process continues from the journal."""
        await end_all([doing.task for doing in self._running.values()])

    # -- what each placement needs

    def _follow(self, entry: InboxEntry, claim: Claim | None) -> None:
        held = next((one for one in self._held.values() if _is_about(entry, one.id, one)), None)
        placements = placements_here(claim, self._host.name) if claim is not None else []
        placement = next((one for one in placements if _is_about(entry, entry.claim_id, one)), None)
        if placement is not None:
            held = self._held.get(placement.placed, held)
        if held is not None and is_newer_token(held.token, entry.token):
            self._discard(entry)
        elif entry.op == "end" and held is not None:
            end_reason = placement.end_reason if placement is not None else None
            self.end(_caused_by(entry, held), entry.entry_id, end_reason, is_of_failed_gang(claim, placement))
        elif claim is None or placement is None or placement.token != entry.token:
            self._discard(entry)
        elif entry.op == "end":
            # Run the stop hook even though the journal does not have the placement.
            self.end(_caused_by(entry, work_of(claim, placement)), entry.entry_id, placement.end_reason)
        else:
            # A resize is handled like a start, with a newer token.
            self.bring_up(_caused_by(entry, work_of(claim, placement)), entry.entry_id)

    def _discard(self, entry: InboxEntry) -> None:
        self._start_task(
            JournalEntry(entry.claim_id, entry.token, entry.token, entry.token), self.steps.lifecycle.discard(entry)
        )

    def _compare_one(self, claim: Claim, placement: Placement) -> None:
        work = self._held.get(placement.placed)
        # ENDING in the journal counts too: the store had requested the end, and the work may be stopped already.
        if placement.state is ClaimStatus.ENDING or (work is not None and work.state is ClaimStatus.ENDING):
            self.end(
                work or work_of(claim, placement),
                end_reason=placement.end_reason,
                gang_failed=is_of_failed_gang(claim, placement),
            )
        elif work is None or _needs_work(placement, work):
            self.bring_up(work_of(claim, placement))

    # -- one task for each placement

    def _start_task(self, work: JournalEntry, steps: Coroutine[None, None, None], is_end: bool = False) -> None:
        before = self._running.get(work.placed)
        # A start or a resize is never cancelled for another one: the store's reply tells it that its token is stale.
        if before is not None and (before.is_end or not is_end):
            steps.close()
            self._missed |= before.token != work.token
            return
        caused_by = Origin(agent_of(self._host.name), work.origin.request_id)
        name = "redsched.end_work" if is_end else "redsched.begin_work"
        traced = partial(tracing.span_of, caused_by.request_id, name, claim_id=work.id, host=self._host.name)
        task = asyncio.create_task(_after(before, steps, caused_by, traced), name=f"claim {work.id}")
        doing = self._running[work.placed] = _RunningTask(task, work.token, is_end)
        # A task that is cancelled before its first step never awaits `steps`.
        task.add_done_callback(lambda _: steps.close())
        task.add_done_callback(lambda _: self._done(work, doing))

    def _done(self, work: JournalEntry, doing: _RunningTask) -> None:
        if self._running.get(work.placed) is doing:
            del self._running[work.placed]
        if not doing.task.cancelled() and (error := doing.task.exception()) is not None:
            _log.error("a claim's task failed", host=self._host.name, claim=work.id, error=repr(error))
        if self._missed:
            self._missed = False
            self.on_missed()


def _is_about(entry: InboxEntry, claim_id: str, one: JournalEntry | Placement) -> bool:
    """Return whether a notification concerns this placement of a claim, by its current or its first token."""
    return entry.claim_id == claim_id and entry.token in (one.token, one.placed)


def _needs_work(placement: Placement, work: JournalEntry) -> bool:
    """Return whether a placement needs work: it is unfinished, or the store has a newer token than the journal."""
    if placement.token != work.token:
        return is_newer_token(placement.token, work.token)
    return work.state is not ACTIVE or placement.state is not ACTIVE or bool(work.resizing_to or placement.resizing_to)


def _caused_by(entry: InboxEntry, work: JournalEntry) -> JournalEntry:
    """Return a placement with who caused a notification. An older release of a scheduler does not say who."""
    return work if entry.origin == UNKNOWN else replace(work, origin=entry.origin)


async def _after(
    before: _RunningTask | None,
    steps: Coroutine[None, None, None],
    caused_by: Origin,
    traced: Callable[[], AbstractContextManager[object]],
) -> None:
    origin.enter(caused_by)
    if before is not None:
        await end(before.task)
    with traced():
        await steps
