"""Calls of agents without access to the store. Each is a command of the store, after checks of what the host sends."""

from collections.abc import Collection, Mapping, Sequence

from redsched import aio, origin
from redsched.errors import ClaimState, InvalidRequest, Settling
from redsched.model import MAX_ALTERNATES, AgentStamp, Claim, HostReport, Request
from redsched.model.limits import check_size
from redsched.model.tokens import Token, is_newer
from redsched.model.validation import check_name
from redsched.scheduler.agents.inbox_feed import InboxFeed
from redsched.scheduler.cells import Cells
from redsched.scheduler.hosts.column_limit import refuse_too_many_columns
from redsched.scheduler.status.wording import raise_command
from redsched.store.cell import CellStore
from redsched.store.codec.attested import check_attested
from redsched.store.codec.claim_fields import REQUEST, alternates_from, alternates_name, texts_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import (
    AttestAnswer,
    EndedPlacement,
    Inboxes,
    JournaledClaim,
    ReportAnswer,
    ScriptResult,
)

AHEAD_MS = 24 * 3600 * 1000
"""How far an epoch that a host has seen may be ahead of the store's clock, unless this process has seen it too."""
RAISE_PAUSE_S = 10.0
"""The time within which one caller may start one new epoch: each costs every host of the cell an attestation.

It doubles with each epoch that the caller starts, up to MAX_RAISE_PAUSE_S, until it starts none for twice that time.
"""
MAX_RAISE_PAUSE_S = 3600.0
MAX_RAISES = 10_000
PRIVATE = frozenset(("call_id",))
"""Fields of claims that no host gets."""


class AgentService:
    """The calls of agents, over the cells of a scheduler."""

    def __init__(self, cells: Cells, poll_s: float) -> None:
        self._cells = cells
        self._poll_s = poll_s
        self._feeds: dict[str, InboxFeed] = {}
        self._raised: dict[tuple[str, str], tuple[float, int]] = {}
        """By cell and caller: when it started an epoch last, and how many it has started."""

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

    async def report(self, report: HostReport, stamp: AgentStamp) -> ReportAnswer:
        """Accept a host's report. Raises NotFound, and ClaimState: too many slots, or another cell has the name."""
        cell = self._cells.named(report.cell)
        refuse_too_many_columns(cell, report)
        answer = await cell.store.hosts.report(report, stamp)
        cell.updater.note_epoch(answer.epoch)
        return answer

    async def attest(
        self,
        store: CellStore,
        host: str,
        epoch: str,
        stamp: AgentStamp,
        held: Sequence[JournaledClaim],
        ended: Sequence[EndedPlacement],
        lease_s: int,
    ) -> AttestAnswer:
        """Attest to an epoch with all claims that the host knows. Raises InvalidRequest, ClaimState as `report`."""
        check_attested(held, ended, epoch)
        answer = await store.hosts.attest(host, epoch, stamp, held, ended, lease_s)
        self._cells.named(store.name).updater.note_epoch(answer.epoch)
        return answer

    async def heartbeats(
        self, store: CellStore, beats: Sequence[tuple[str, int, AgentStamp]]
    ) -> dict[str, ScriptResult]:
        """Renew the leases of hosts: name, lease_s and stamp of each. Returns the outcomes by host."""
        answers = await aio.gather(store.hosts.heartbeat(host, lease_s, stamp) for host, lease_s, stamp in beats)
        for answer in answers:
            self._cells.named(store.name).updater.note_epoch(answer.epoch)
        return {host: answer for (host, _, _), answer in zip(beats, answers, strict=True)}

    async def raise_epoch(self, store: CellStore, host: str, above: str) -> ScriptResult:
        """Start a new epoch unless the current one is above `above`, which the host has seen.

        An epoch far in the future could be an invention of the host, unless this process has seen it in the cell too:
        the store's clock may have been wrong. Raises ClaimState for one that it has not seen, which the cell's status
        shows then, and Settling for a caller that has started another one lately.
        """
        clock, seen = await store.tick(), Token.parse(f"{above}.0")
        updater = self._cells.named(store.name).updater
        updater.note_epoch(clock.epoch)
        if seen.epoch_ms > clock.now_ms + AHEAD_MS and is_newer(above, updater.highest_epoch):
            await store.status.note_refused(host, above)
            raise ClaimState(
                f"epoch {above} is more than a day ahead of the store's clock, and this API has not seen it: if that "
                f"clock was wrong once, an operator can start an epoch above it: {raise_command(above)}",
                {"host": host, "epoch": above, "cell": store.name},
            )
        key, now_s = (store.name, origin.current().actor or host), aio.now_s()
        at_s, times = self._raised.get(key, (now_s, 0))
        pause_s = min(RAISE_PAUSE_S * 2 ** (times - 1), MAX_RAISE_PAUSE_S) if times else 0.0
        is_needed = Token.parse(f"{clock.epoch}.0").epoch_ms <= seen.epoch_ms
        if is_needed and now_s < at_s + pause_s:
            raise Settling(f"host {host} or its token has started an epoch within the last {pause_s:g} s: try again")
        answer = await store.raise_epoch(above)
        if answer.outcome is Outcome.OK:
            self._note_raised(key, now_s)
        return answer

    def _note_raised(self, key: tuple[str, str], now_s: float) -> None:
        forget_s = now_s - 2 * MAX_RAISE_PAUSE_S
        if len(self._raised) >= MAX_RAISES or self._raised.get(key, (now_s, 0))[0] < forget_s:
            self._raised = {one: known for one, known in self._raised.items() if known[0] > forget_s}
        self._raised[key] = now_s, min(self._raised.get(key, (now_s, 0))[1] + 1, 32)

    # -- inboxes

    async def inboxes(self, store: CellStore, after: Mapping[str, str], timeout_s: float) -> Inboxes:
        """Return the notifications of hosts after the entries `after`; wait up to `timeout_s` seconds for the first."""
        if store.name not in self._feeds:
            self._feeds[store.name] = InboxFeed(store, self._poll_s)
        return await self._feeds[store.name].read(after, timeout_s)

    async def close(self) -> None:
        """End all waits."""
        for feed in self._feeds.values():
            await feed.close()

    # -- claims and texts

    async def claims(self, store: CellStore, hosts: Collection[str], ids: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return by id the hashes of those of the claims that have a placement on one of these hosts."""
        found = await store.claims.read(ids)
        return {one: _shown(claim) for one, claim in found.items() if _is_on(claim, hosts)}

    async def texts(self, store: CellStore, host: str, claim_id: str, names: Collection[str]) -> dict[str, str]:
        """Return texts that a claim refers to, by name; none if it is not, or no longer, on this host."""
        claim = await _claim_on(store, host, claim_id)
        known = texts_of(claim.claim_id, claim.raw) if claim is not None else ()
        return await store.texts.read([name for name in known if name in names])

    async def restore_text(self, store: CellStore, host: str, claim_id: str, name: str, text: str) -> None:
        """Restore a text that the store has lost, if a claim on this host refers to it.

        Raises InvalidRequest for a text that is not the one.
        """
        claim = await _claim_on(store, host, claim_id)
        if claim is None or name not in texts_of(claim.claim_id, claim.raw):
            return
        _check_text(claim, name, text)
        # A request is restored as often as hosts like: its text is the one with this digest. A list could be another.
        if name != alternates_name(claim_id) or await store.texts.missing([name]):
            await store.texts.restore(name, text)


async def _claim_on(store: CellStore, host: str, claim_id: str) -> Claim | None:
    claim = (await store.claims.read([claim_id])).get(claim_id)
    return claim if claim is not None and _is_on(claim, [host]) else None


def _is_on(claim: Claim, hosts: Collection[str]) -> bool:
    return any(one.host in hosts for one in claim.placements)


def _shown(claim: Claim) -> dict[str, str]:
    return {name: value for name, value in claim.raw.items() if name not in PRIVATE}


def _check_text(claim: Claim, name: str, text: str) -> None:
    """Check that a text is what its name says: the request with this digest, or a list of hosts."""
    if name == alternates_name(claim.claim_id):
        hosts = alternates_from(text)
        check_size("alternates", hosts, MAX_ALTERNATES)
        for host in hosts:
            check_name("host", host)
    elif Request.from_canonical(text).digest() != name.removeprefix(f"{REQUEST}:"):
        raise InvalidRequest(f"the text is not the request {name}: report what the store returned")
