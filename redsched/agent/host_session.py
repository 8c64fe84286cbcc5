"""One host's session with the store, over its link: its reports, its attestation to the current epoch, its heartbeats.

    unknown --report--> reported --attest--> open --heartbeat--> open
       ^                   ^                  |
       |                   +--- NOT_ATTESTED -------+      another epoch, or written off
       +------------------------ UNKNOWN ----+      forgotten

Only an open host accepts claims. The package `claims` handles them; `agent` schedules each step.
"""

import asyncio
import dataclasses
import random
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from redsched import aio, logs
from redsched.agent.external import is_worth_sending
from redsched.agent.journal.journal import Journal
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.link import CellLink
from redsched.agent.monitor import HostMonitor
from redsched.agent.store_clock import StoreClock
from redsched.errors import ClaimState, InvalidRequest, OtherAgent, StoreUnavailable, Unavailable
from redsched.model import MAX_RUNTIME_S, AgentStamp, Claim, HostReport
from redsched.model.hosts import warnings_of
from redsched.model.limits import MAX_CALL_CLAIMS
from redsched.model.tokens import is_newer
from redsched.model.validation import parse_int
from redsched.release import release
from redsched.settings import Settings
from redsched.store.agent_calls import (
    AttestCall,
    Beat,
    ClaimIdsCall,
    ClaimsCall,
    DevicesCall,
    HeartbeatsCall,
    MissingTextsCall,
    RaiseEpochCall,
    ReportCall,
    RestoreTextCall,
)
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import EndedPlacement, JournaledClaim, ReportReply

BEATS_IN_LEASE = 3
MAX_ATTESTS = 10
"""The most attestations in a row that the store may reject with another epoch, before the host waits for its timer."""

SAME_MS = 5000
"""Deadlines that differ by no more are the same: replies take time, and clocks drift."""

MAX_TEXTS = 100
"""The most texts that a host restores at the same time."""

_log = logs.get_logger("redsched.agent")


@dataclass(slots=True, eq=False)
class Host:
    """One host of this process. `nonce` identifies the process; `on_open` gets the placements that the store drops."""

    cell: CellLink
    monitor: HostMonitor
    journal: Journal
    settings: Settings
    nonce: str
    on_open: Callable[["Host", Iterable[str]], None]
    on_closed: Callable[["Host"], None]

    name: str = field(init=False)
    epoch: str = field(default="", init=False)
    """The epoch that the host is open in; '' while it is not open."""
    opened: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    clock: StoreClock = field(init=False)
    """The store's time in the current epoch."""
    _sent: HostReport | None = field(default=None, init=False)
    _is_known: bool = field(default=False, init=False)
    _seen_epoch: str = field(default="", init=False)
    _version: tuple[str, int] = field(default=("", 0), init=False)
    _number: int = field(default=1, init=False)
    _report_at_s: float = field(default=0.0, init=False)
    _owes_texts: bool = field(default=True, init=False)
    """Whether the store may have lost texts since this host last restored those of its claims."""
    _session_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self.name = self.monitor.collector.name
        self.clock = self.journal.store_clock(self.cell.name)

    # -- periodic steps

    async def sync(self) -> None:
        """Report, attest or send a heartbeat, as the session's state requires.

        Raises Unavailable, OtherAgent, and ClaimState if another cell has the host.
        """
        async with self._session_lock:
            await self._prepare()
            if not self._is_known or aio.now_s() >= self._report_at_s:
                await self._send_in_turn()
            if not self.epoch:
                await self._attest()
            else:
                await self._heartbeat()
            if self.epoch and self._owes_texts:
                await self._restore_texts()
                self._owes_texts = False

    async def observe(self) -> None:
        """Observe the host, and report it if something has changed.

        Raises Unavailable, OtherAgent, OSError, and ClaimState as `sync`.
        """
        async with self._session_lock:
            await self._prepare()
            report = await self.monitor.observe()
            if self._sent is not None and is_worth_sending(report, self._sent):
                await self._send(report)

    async def external_without(self, placed: str) -> dict[str, int]:
        """Return the external usage, by slot, that has changed since the last report, without a placement's work."""
        report = await self.monitor.observe(without=placed)
        sent = self._sent.external if self._sent is not None else {}
        slots = report.external.keys() | sent.keys()
        return {
            slot: report.external.get(slot, 0) for slot in slots if report.external.get(slot, 0) != sent.get(slot, 0)
        }

    def note_external(self, external: dict[str, int]) -> None:
        """Record external usage that the store has accepted: the next report is compared with it."""
        if self._sent is not None and external:
            merged = {**self._sent.external, **external}
            self._sent = dataclasses.replace(self._sent, external={slot: n for slot, n in merged.items() if n})

    def record_reply(self, epoch: str, now_ms: int, attest: bool = False) -> None:
        """Record the epoch and time of a reply. A newer epoch closes the host: it accepts no claim until it attests."""
        self.clock.note(epoch, now_ms)
        if is_newer(epoch, self._seen_epoch):
            self._seen_epoch = epoch
        if is_newer(self.epoch, epoch):
            # A late reply from before this host attested, or a stale replica of the store. The next heartbeat decides.
            self.on_closed(self)
        if self.epoch and (attest or is_newer(epoch, self.epoch)):
            self._close()

    async def begin_new_epoch(self) -> None:
        """Raise the epoch: the store has lost writes of this host's epoch without having noticed."""
        if self.epoch:
            await self._raise_epoch_above(self.epoch, self.epoch)

    @property
    def now_ms(self) -> int:
        """The store's time; 0 before its first reply."""
        return self.clock.now_ms() or 0

    def is_overdue(self, work: JournalEntry) -> bool:
        """Return whether the time that a placement's work may run is up."""
        left_ms = self.journal.left_ms(self.name, work.placed)
        return left_ms is not None and left_ms <= 0

    def runtime_left_ms(self, work: JournalEntry) -> int | None:
        """Return how long the work of a new placement may run from now on, by what the store says; None for no limit.

        The store's clock tells only while the epoch lasts in which this host is open: all deadlines on it are of that
        clock. While there is none, the placement gets all of its time: its work has not begun.
        """
        deadline_ms, now_ms = work.runtime_deadline_ms, self.clock.now_ms()
        if deadline_ms is None:
            return None
        most_ms = parse_int(work.record.get("max_runtime_s", ""), 0) * 1000
        if now_ms is None or self.clock.epoch != self.epoch:
            return most_ms or None
        return min(deadline_ms - now_ms, most_ms or MAX_RUNTIME_S * 1000)

    # -- inside

    async def _prepare(self) -> None:
        """Read what the first observation needs to know: claims and names of devices that a lost journal had."""
        if self.monitor.lacks_devices:
            await self.monitor.adopt_devices(await self._devices_in_store())
        if self.monitor.is_unobserved:
            self.monitor.unknown = await self._placements_in_store()

    async def _send_in_turn(self) -> None:
        try:
            await self._send(self.monitor.report or await self.monitor.observe())
        except (ClaimState, Unavailable):
            # Another cell has got the host since it was opened, or the key that binds its name is on a server that is
            # away, while that of the cell is there. Its work goes on, so it must not count as down.
            if self.epoch:
                await self._heartbeat()
            raise

    async def _devices_in_store(self) -> dict[str, str]:
        """Return the devices of the last report by the names of their pools.

        None if the host has no claims: its machine may have been replaced, and no name of the old one is needed.
        """
        if not await self._claim_ids():
            return {}
        return dict((await self.cell.call(DevicesCall(self.name))).devices)

    async def _claim_ids(self) -> Set[str]:
        return (await self.cell.call(ClaimIdsCall((self.name,)))).ids[self.name]

    async def _send(self, report: HostReport) -> None:
        stamp = await self._stamp()
        answer = await self.cell.call(ReportCall.of(report, stamp))
        self._check_owner(answer.outcome)
        self.record_reply(answer.epoch, answer.now_ms)
        await self._check_version(answer)
        self._warn_of_unusable(report)
        self._sent = report
        self._is_known = True
        self._report_at_s = aio.now_s() + self.settings.report_s * random.uniform(0.5, 1.0)
        # An earlier process with the same journal has attested to this epoch, so the store has everything.
        if not self.epoch and answer.attested and answer.epoch == self.journal.pages[self.name].attested_epoch:
            self._open(answer.epoch, ())

    def _warn_of_unusable(self, report: HostReport) -> None:
        """Log of which slots nothing can ever be claimed, when that changes."""
        warnings = warnings_of(report.slots())
        if warnings and (self._sent is None or warnings != warnings_of(self._sent.slots())):
            _log.warning("nothing of this can ever be claimed", host=self.name, inventories=", ".join(warnings))

    async def _check_version(self, answer: ReportReply) -> None:
        """Raise the epoch if the host's version decreased within it: the store has lost writes without noticing."""
        epoch, version = self._version
        if answer.epoch == epoch and answer.version < version:
            await self._raise_epoch_above(epoch, answer.epoch)
        elif answer.outcome is Outcome.OK:
            self._version = (answer.epoch, answer.version)

    async def _attest(self) -> None:
        for _ in range(MAX_ATTESTS):
            epoch = await self._leave_epoch()
            held, ended = await self._all_placements()
            stamp = await self._stamp()
            call = AttestCall(self.name, epoch, stamp, held, ended, self.settings.lease_s)
            answer = await self.cell.call(call)
            self._check_owner(answer.outcome)
            self.record_reply(answer.epoch, answer.now_ms)
            if answer.outcome is Outcome.UNKNOWN:
                self._is_known = False
                await self._send(self.monitor.report or await self.monitor.observe())
            elif answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
                # Not awaited: if it is lost, the host attests once more and gets ALREADY_DONE.
                self.journal.write_attested(self.name, answer.epoch)
                self._owes_texts = True
                self._open(answer.epoch, answer.drop)
                return
            elif answer.outcome is not Outcome.WRONG_EPOCH:
                raise StoreUnavailable(f"host {self.name} cannot attest: the store answers {answer.outcome}")
            elif is_newer(epoch, answer.epoch):
                await self._raise_epoch_above(epoch, answer.epoch)
        raise StoreUnavailable(f"host {self.name} cannot attest: the store's epoch changes faster than it can report")

    async def _leave_epoch(self) -> str:
        """Record durably that the host leaves its epoch, before it attests to the new one, and return the new one."""
        page = self.journal.pages[self.name]
        if self._seen_epoch == page.left_epoch or is_newer(page.left_epoch, self._seen_epoch):
            await self._raise_epoch_above(page.left_epoch, self._seen_epoch)
        if is_newer(page.attested_epoch, self._seen_epoch):
            await self._raise_epoch_above(page.attested_epoch, self._seen_epoch)
        # Equal if an operator has written the host off: it then attests to the same epoch once more.
        if page.attested_epoch not in ("", self._seen_epoch):
            await self.journal.write_left_epoch(self.name, page.attested_epoch)
        return self._seen_epoch

    async def _all_placements(self) -> tuple[tuple[JournaledClaim, ...], tuple[EndedPlacement, ...]]:
        """Return the placements that the journal holds, and the ended ones that it remembers."""
        # In this order, a placement that ends in between is in both lists; in the other order it could be in neither.
        held = list(self.journal.pages[self.name].held.values())
        ended = await self.journal.ended(self.name)
        over = {one.placed for one in ended}
        return tuple(self._journaled_claim(one) for one in held if one.placed not in over), tuple(ended)

    def _journaled_claim(self, work: JournalEntry) -> JournaledClaim:
        record = dict(work.record) | ({"log": f"{self.name}:{work.log}"} if work.log else {})
        if (deadline_ms := self._runtime_deadline_ms(work)) is not None:
            record["runtime_deadline_ms"] = str(deadline_ms)
        if work.work_end is not None:
            record["work_ended_at_ms"] = str(work.work_end.at_ms)
        return JournaledClaim(work.id, work.token, work.placed, work.root, work.state, record, work.was_active)

    def _runtime_deadline_ms(self, work: JournalEntry) -> int | None:
        """Return when the work has to stop by the store's present clock, if that differs from what the record says."""
        left_ms, now_ms = self.journal.left_ms(self.name, work.placed), self.clock.now_ms()
        known_ms = work.runtime_deadline_ms
        if left_ms is None or now_ms is None or known_ms is None or abs(now_ms + left_ms - known_ms) <= SAME_MS:
            return None
        return max(0, now_ms + left_ms)

    async def _placements_in_store(self) -> dict[str, str]:
        """Return the placements that the store has on this host, as claim ids by `placed`."""
        ids, found = sorted(await self._claim_ids()), dict[str, Claim]()
        for first in range(0, len(ids), MAX_CALL_CLAIMS):
            call = ClaimsCall((self.name,), tuple(ids[first : first + MAX_CALL_CLAIMS]))
            some = await self.cell.call(call)
            found |= some
        return {
            one.placed: claim.claim_id for claim in found.values() for one in claim.placements if one.host == self.name
        }

    async def _restore_texts(self) -> None:
        """Restore the requests and alternates that the store has lost, so that restored claims can be placed again."""
        known = self.journal.texts
        names = {name: work.id for work in self.journal.pages[self.name].held.values() for name in work.texts}
        kept = names.keys() & known.keys()
        missing = (await self.cell.call(MissingTextsCall(self.name, tuple(kept)))).missing if kept else ()
        for first in range(0, len(missing), MAX_TEXTS):
            batch = missing[first : first + MAX_TEXTS]
            await aio.gather(self._restore_text(names[one], one, known[one]) for one in batch if one in known)

    async def _restore_text(self, claim_id: str, name: str, text: str) -> None:
        try:
            await self.cell.call(RestoreTextCall(self.name, claim_id, name, text))
        except InvalidRequest as error:  # the API refuses a text that is not what its name says
            _log.error("text not restored", host=self.name, claim=claim_id, text=name, reason=error.detail)

    async def _raise_epoch_above(self, epoch: str, met: str) -> None:
        """Raise the epoch of a store that was rolled back. A higher epoch costs no more than attesting again."""
        _log.warning("the store has gone back; it starts a new epoch", host=self.name, had=epoch, met=met)
        answer = await self.cell.call(RaiseEpochCall(self.name, epoch))
        self.record_reply(answer.epoch, answer.now_ms)

    async def _heartbeat(self) -> None:
        beats = {self.name: Beat(self._lease_s(), self._last_stamp())}
        answer = (await self.cell.call(HeartbeatsCall(beats))).hosts[self.name]
        self._check_owner(answer.outcome)
        if is_newer(self.epoch, answer.epoch):
            await self._raise_epoch_above(self.epoch, answer.epoch)
            return
        self.record_reply(answer.epoch, answer.now_ms, attest=answer.outcome is Outcome.NOT_ATTESTED)
        if answer.outcome is Outcome.UNKNOWN:
            self._is_known = False
            if self.epoch:
                self._close()

    def _check_owner(self, outcome: Outcome) -> None:
        if outcome is Outcome.NOT_OWNER:
            raise OtherAgent(
                f"another agent speaks for host {self.name}: stop one of the two, "
                f"or give this one its own REDSCHED_HOST_NAME and journal (now {self.journal.path})"
            )

    def _open(self, epoch: str, drop: Iterable[str]) -> None:
        self.epoch = epoch
        self.opened.set()
        self.on_open(self, drop)

    def _close(self) -> None:
        _log.debug("host has to attest again", host=self.name, epoch=self._seen_epoch, left=self.epoch)
        self.epoch = ""
        self.opened.clear()
        self.on_closed(self)

    async def _stamp(self) -> AgentStamp:
        self._number = await self.journal.next_number()
        return self._last_stamp()

    def _last_stamp(self) -> AgentStamp:
        return AgentStamp(self.journal.id, self.nonce, self._number, release())

    def _lease_s(self) -> int:
        return self.monitor.report.lease_s if self.monitor.report is not None else self.settings.lease_s

    def next_beat_s(self) -> float:
        """Return the seconds until the next heartbeat, with jitter, so that hosts that started together drift apart."""
        return self._lease_s() / BEATS_IN_LEASE * random.uniform(0.8, 1.0) if self.epoch else 0.0
