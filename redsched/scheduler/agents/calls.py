"""Run the calls of agents without access to the store, after checks of what the host sends."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from redsched import aio, origin
from redsched.errors import ClaimState, InvalidRequest, Settling
from redsched.model import MAX_ALTERNATES, Claim, Request
from redsched.model.limits import check_size
from redsched.model.records.problems import ClaimStateFacts
from redsched.model.tokens import Token, is_newer
from redsched.model.validation import check_name
from redsched.scheduler.agents.inbox_feed import InboxFeed
from redsched.scheduler.cells import Cells
from redsched.scheduler.hosts.column_limit import refuse_too_many_columns
from redsched.store.agent_calls import (
    AgentCall,
    AttestCall,
    ClaimsCall,
    ClaimTexts,
    HeartbeatReplies,
    HeartbeatsCall,
    InboxesCall,
    RaiseEpochCall,
    ReportCall,
    RestoreTextCall,
    TextsCall,
)
from redsched.store.cell import CellStore
from redsched.store.codec.attested import check_attested
from redsched.store.codec.claim_fields import REQUEST, alternates_from, alternates_name, texts_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import AttestReply, Inboxes, ReportReply, ScriptResult
from redsched.wording import raise_command

AHEAD_MS = 24 * 3600 * 1000
"""How far an epoch that a host has seen may be ahead of the store's clock, unless this process has seen it too."""
RAISE_PAUSE_S = 10.0
"""The time within which one caller may start one new epoch: each costs every host of the cell an attestation.

It doubles with each epoch that the caller starts, up to MAX_RAISE_PAUSE_S, until it starts none for twice that time.
"""
MAX_RAISE_PAUSE_S = 3600.0
MAX_RAISES = 10_000

R = TypeVar("R")


class AgentService:
    """The calls of agents, over the cells of a scheduler."""

    def __init__(self, cells: Cells, poll_s: float) -> None:
        self._cells = cells
        self._poll_s = poll_s
        self._feeds: dict[str, InboxFeed] = {}
        self._raised: dict[tuple[str, str], tuple[float, int]] = {}
        """By cell and caller: when it started an epoch last, and how many it has started."""
        self._checked: Mapping[type[AgentCall[Any]], Callable[[CellStore, Any], Awaitable[Any]]] = {
            ReportCall: self._report,
            AttestCall: self._attest,
            HeartbeatsCall: self._heartbeats,
            RaiseEpochCall: self._raise_epoch,
            InboxesCall: self._inboxes,
            TextsCall: self._texts,
            RestoreTextCall: self._restore_text,
        }
        """How calls are run that need more than the checks of their types."""

    def store(self, cell: str) -> CellStore:
        """Return the commands of a cell; '' is the only one. Raises NotFound, and InvalidRequest without a name."""
        if not cell:
            if len(self._cells) > 1:
                raise InvalidRequest("there are several cells: pass the name of one as `cell`")
            return next(iter(self._cells)).store
        return self._cells.named(cell).store

    @property
    def cells(self) -> list[str]:
        """The names of the cells."""
        return [cell.name for cell in self._cells]

    async def call(self, store: CellStore, call: AgentCall[R]) -> R:
        """Return the reply of a cell to a call, after the checks that an agent with access to the store does not need.

        Raises InvalidRequest, NotFound, ClaimState, Settling, and what the store's commands raise.
        """
        checked = self._checked.get(type(call))
        reply: R = await (store.call(call) if checked is None else checked(store, call))
        return reply

    async def _report(self, store: CellStore, call: ReportCall) -> ReportReply:
        """Accept a host's report. Raises ClaimState: too many slots, or another cell has the name."""
        cell = self._cells.named(store.name)
        refuse_too_many_columns(cell, call)
        answer = await store.call(call)
        cell.updater.note_epoch(answer.epoch)
        return answer

    async def _attest(self, store: CellStore, call: AttestCall) -> AttestReply:
        """Attest to an epoch with all claims that the host knows. Raises InvalidRequest, ClaimState as `_report`."""
        check_attested(call.held, call.ended, call.epoch)
        answer = await store.call(call)
        self._cells.named(store.name).updater.note_epoch(answer.epoch)
        return answer

    async def _heartbeats(self, store: CellStore, call: HeartbeatsCall) -> HeartbeatReplies:
        """Renew the leases of hosts."""
        found = await store.call(call)
        updater = self._cells.named(store.name).updater
        for answer in found.hosts.values():
            updater.note_epoch(answer.epoch)
        return found

    async def _raise_epoch(self, store: CellStore, call: RaiseEpochCall) -> ScriptResult:
        """Start a new epoch unless the current one is above `above`, which the host has seen.

        An epoch far in the future could be an invention of the host, unless this process has seen it in the cell too:
        the store's clock may have been wrong. Raises ClaimState for one that it has not seen, which the cell's status
        shows then, and Settling for a caller that has started another one lately.
        """
        host, above = call.host, call.above
        clock, seen = await store.tick(), Token.parse(f"{above}.0")
        updater = self._cells.named(store.name).updater
        updater.note_epoch(clock.epoch)
        if seen.epoch_ms > clock.now_ms + AHEAD_MS and is_newer(above, updater.highest_epoch):
            await store.status.note_refused(host, above)
            raise ClaimState(
                f"epoch {above} is more than a day ahead of the store's clock, and this API has not seen it: if that "
                f"clock was wrong once, an operator can start an epoch above it: {raise_command(above)}",
                ClaimStateFacts(host=host, epoch=above, cell=store.name),
            )
        key, now_s = (store.name, origin.current().actor or host), aio.now_s()
        at_s, times = self._raised.get(key, (now_s, 0))
        pause_s = min(RAISE_PAUSE_S * 2 ** (times - 1), MAX_RAISE_PAUSE_S) if times else 0.0
        is_needed = Token.parse(f"{clock.epoch}.0").epoch_ms <= seen.epoch_ms
        if is_needed and now_s < at_s + pause_s:
            raise Settling(f"host {host} or its token has started an epoch within the last {pause_s:g} s: try again")
        answer = await store.call(call)
        if answer.outcome is Outcome.OK:
            self._note_raised(key, now_s)
        return answer

    def _note_raised(self, key: tuple[str, str], now_s: float) -> None:
        forget_s = now_s - 2 * MAX_RAISE_PAUSE_S
        if len(self._raised) >= MAX_RAISES or self._raised.get(key, (now_s, 0))[0] < forget_s:
            self._raised = {one: known for one, known in self._raised.items() if known[0] > forget_s}
        self._raised[key] = now_s, min(self._raised.get(key, (now_s, 0))[1] + 1, 32)

    # -- inboxes

    async def _inboxes(self, store: CellStore, call: InboxesCall) -> Inboxes:
        """Return the notifications of hosts after the entries `after`; wait up to `timeout_s` seconds for the first."""
        if store.name not in self._feeds:
            self._feeds[store.name] = InboxFeed(store, self._poll_s)
        return await self._feeds[store.name].read(call)

    async def close(self) -> None:
        """End all waits."""
        for feed in self._feeds.values():
            await feed.close()

    # -- texts

    async def _texts(self, store: CellStore, call: TextsCall) -> ClaimTexts:
        """Return texts that a claim refers to, by name; none if it is not, or no longer, on this host."""
        claim = await _claim_on(store, call)
        known = texts_of(claim.claim_id, claim.raw) if claim is not None else ()
        return await store.call(replace(call, names=tuple(name for name in known if name in call.names)))

    async def _restore_text(self, store: CellStore, call: RestoreTextCall) -> None:
        """Restore a text that the store has lost, if a claim on this host refers to it.

        Raises InvalidRequest for a text that is not the one.
        """
        claim = await _claim_on(store, call)
        if claim is None or call.name not in texts_of(claim.claim_id, claim.raw):
            return
        _check_text(claim, call.name, call.text)
        # A request is restored as often as hosts like: its text is the one with this digest. A list could be another.
        if call.name != alternates_name(call.claim_id) or await store.texts.missing([call.name]):
            await store.call(call)


async def _claim_on(store: CellStore, call: TextsCall | RestoreTextCall) -> Claim | None:
    return (await store.call(ClaimsCall((call.host,), (call.claim_id,)))).get(call.claim_id)


def _check_text(claim: Claim, name: str, text: str) -> None:
    """Check that a text is what its name says: the request with this digest, or a list of hosts."""
    if name == alternates_name(claim.claim_id):
        hosts = alternates_from(text)
        check_size("alternates", hosts, MAX_ALTERNATES)
        for host in hosts:
            check_name("host", host)
    elif Request.from_canonical(text).digest() != name.removeprefix(f"{REQUEST}:"):
        raise InvalidRequest(f"the text is not the request {name}: report what the store returned")
