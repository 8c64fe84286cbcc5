"""Confirmations: wait until hosts confirm claims, in one cell.

Waits use the feed, which the updater reads anyway, so each wait costs the store one read, and a thousand waits share
one round trip. Some changes are not seen in the feed: those before the wait, those covered by a snapshot, and claims
that an attesting host restored. For these the claims themselves are read.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from redsched import aio, logs
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import RedschedError
from redsched.model import ENDING_OR_ENDED, Claim, ClaimStatus, EndReason, Reason
from redsched.model.records.problems import NOT_CONFIRMED, UNKNOWN, FailedAttempt
from redsched.store.cell import CellStore
from redsched.store.codec.replies import Change

READ_AT_ONCE = 500
AGAIN_AFTER_S = 0.2
_WHY = frozenset(EndReason)
_FAILURES = frozenset((EndReason.FAILED, EndReason.EXPIRED))

log = logs.get_logger(__name__)


class _Wait:
    """One wait, until no claim is `left` or one is `lost`. `hosts` has the hosts on which each claim may be."""

    __slots__ = ("_each_s", "_failures", "_passed", "done", "hosts", "left", "lost", "until_s")

    def __init__(self, hosts: Mapping[str, str], within_s: float, each_s: float) -> None:
        self.left = set(hosts)
        self.hosts = {claim_id: [host] for claim_id, host in hosts.items()}
        self._failures: dict[str, dict[str, FailedAttempt]] = {claim_id: {} for claim_id in hosts}
        """Failures by claim and host."""
        self.lost: dict[str, FailedAttempt | None] = {}
        """How claims ended that can no longer become active; None if by the last of their `_failures`."""
        self.done = asyncio.Event()
        self.until_s = aio.now_s() + within_s
        self._each_s = each_s
        self._passed: set[tuple[str, str]] = set()

    def extend(self, claim_id: str, step: str) -> None:
        """Extend the wait for a claim that gets another placement, by `each_s`, once for each such step."""
        if self._each_s and (claim_id, step) not in self._passed:
            self._passed.add((claim_id, step))
            self.until_s = aio.now_s() + self._each_s

    def has_failed(self, attempt: FailedAttempt) -> None:
        """Record a failure. The first record of a host is kept: a feed entry has more details than a later read."""
        self._failures[attempt.claim_id].setdefault(attempt.host, attempt)

    def explain(self, claim_id: str, reason: Reason) -> None:
        """Record the details of the claim's last failure and its time, unless they are known already."""
        failure = self._failures[claim_id].get(reason.host)
        if failure is not None and not failure.reason:
            self._failures[claim_id][reason.host] = replace(failure, at_ms=reason.at_ms, reason=reason.text)

    def may_have_failed(self, claim_id: str) -> bool:
        """Return whether the details of a known failure are missing."""
        return any(not one.reason for one in self._failures[claim_id].values())

    def attempts(self, claim_id: str, now_ms: int, within_s: float) -> Iterator[FailedAttempt]:
        """Yield why a claim is not active: each failure, and how it ended."""
        yield from self._failures[claim_id].values()
        host = self.hosts[claim_id][-1]
        waited = FailedAttempt(claim_id, host, now_ms, NOT_CONFIRMED, f"within {within_s:g} s")
        if last := self.lost.get(claim_id, waited):
            yield last

    def is_active(self, claim_id: str) -> None:
        self.left.discard(claim_id)
        if not self.left:
            self.done.set()

    def is_lost(self, claim_id: str, last: FailedAttempt | None) -> None:
        self.lost[claim_id] = last
        self.done.set()


class ConfirmationWaiter:
    """The waits of one cell. It must be a listener of the cell's replica.

    `on_pending` is called with each awaited claim that needs another placement, which is faster than the next sweep.
    """

    def __init__(self, store: CellStore, updater: ReplicaUpdater, on_pending: Callable[[Claim], None]) -> None:
        self._store = store
        self._updater = updater
        self._on_pending = on_pending
        self._waits: dict[str, list[_Wait]] = {}
        """The waits by claim."""
        self._on: dict[str, Counter[str]] = {}
        """The awaited claims, by host, with the number of waits for each."""
        self._to_reread: set[str] = set()
        """Claims that must be read."""
        self._reading: asyncio.Task[None] | None = None
        self._is_stopped = False

    async def stop(self) -> None:
        """Cancel the reads in progress. Waits continue until their timeout."""
        self._is_stopped = True
        await aio.end(self._reading)

    async def wait(self, hosts: Mapping[str, str], within_s: float, each_s: float = 0) -> tuple[FailedAttempt, ...]:
        """Wait for hosts (by claim id) to confirm. Returns why claims are not active; () if all are.

        The wait ends early if a claim can no longer become active. With `each_s`, it lasts at least that long after
        one of the claims was last placed again, or became pending.
        """
        waiter = _Wait(hosts, within_s, each_s)
        for claim_id, host in hosts.items():
            self._waits.setdefault(claim_id, []).append(waiter)
            self._on.setdefault(host, Counter())[claim_id] += 1
        self._check(hosts)
        try:
            while not waiter.done.is_set() and (left_s := waiter.until_s - aio.now_s()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await waiter.done.wait()
        finally:
            self._leave(waiter)
        now_ms = self._updater.now_ms()
        return tuple(found for claim_id in sorted(waiter.left) for found in waiter.attempts(claim_id, now_ms, within_s))

    def on_changes(self, changes: Sequence[Change]) -> None:
        """Process entries of the feed that concern awaited claims."""
        if not self._waits:
            return
        for change in changes:
            if change.op == "attest":
                self._check(self._on.get(change.name, ()))
                continue
            claim_id = change.fields.get("claim", "")
            for one in self._waits.get(claim_id, ()):
                if change.op == ClaimStatus.ACTIVE:
                    one.is_active(claim_id)
                elif change.op == ClaimStatus.CLAIMED:
                    self._follow(one, claim_id, change.name)
                elif change.op == ClaimStatus.ENDING or change.op in _WHY:
                    if failure := _failure_in(change):
                        one.has_failed(failure)
                    self._check((claim_id,))  # the claim may be placed on another host

    def on_reset(self) -> None:
        """Read all awaited claims again: the snapshot may include confirmations that were not in the feed."""
        self._check(self._waits)

    def _follow(self, one: _Wait, claim_id: str, host: str) -> None:
        """Record another placement of the claim: a confirmation by its host counts too."""
        if host not in one.hosts[claim_id]:
            one.extend(claim_id, f"placed on {host}")
            one.hosts[claim_id].append(host)
            self._on.setdefault(host, Counter())[claim_id] += 1

    def _leave(self, one: _Wait) -> None:
        for claim_id, hosts in one.hosts.items():
            self._waits[claim_id].remove(one)
            if not self._waits[claim_id]:
                del self._waits[claim_id]
            for host in hosts:
                self._leave_host(claim_id, host)

    def _leave_host(self, claim_id: str, host: str) -> None:
        here = self._on[host]
        here[claim_id] -= 1
        if not here[claim_id]:
            del here[claim_id]
        if not here:
            del self._on[host]

    def _check(self, claim_ids: Iterable[str]) -> None:
        self._to_reread.update(claim_ids)
        if self._to_reread and not self._is_stopped and (self._reading is None or self._reading.done()):
            self._reading = aio.detached(self._read(), name=f"redsched-confirmations-{self._store.name}")

    async def _read(self) -> None:
        while self._to_reread:
            batch = [self._to_reread.pop() for _ in range(min(READ_AT_ONCE, len(self._to_reread)))]
            try:
                found = await self._store.claims.read(batch)
                reasons = await self._store.claims.reasons(
                    one for one in batch if self._may_have_failed(found.get(one))
                )
            except RedschedError as error:
                log.warning("confirmations not read", cell=self._store.name, problem=error.detail)
                self._to_reread.update(batch)
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            for claim_id in batch:
                self._explain(claim_id, found.get(claim_id), reasons.get(claim_id))
                self._judge(claim_id, found.get(claim_id))

    def _may_have_failed(self, claim: Claim | None) -> bool:
        if claim is None:
            return False
        return _has_failed(claim) or any(
            one.may_have_failed(claim.claim_id) for one in self._waits.get(claim.claim_id, ())
        )

    def _explain(self, claim_id: str, claim: Claim | None, reason: Reason | None) -> None:
        for one in self._waits.get(claim_id, ()):
            if claim is not None and _has_failed(claim):
                one.has_failed(self._failure_of(claim))
                one.extend(claim_id, f"failed by {claim.retry_from}")
            if reason is not None:
                one.explain(claim_id, reason)

    def _judge(self, claim_id: str, claim: Claim | None) -> None:
        if claim is not None and claim.state is ClaimStatus.PENDING and claim_id in self._waits:
            self._on_pending(claim)
            # If the claim ends because no host fits, the feed does not show it, because no host changes.
            asyncio.get_running_loop().call_later(AGAIN_AFTER_S, self._check, (claim_id,))
        for one in self._waits.get(claim_id, ()):
            if claim is not None and claim.state is ClaimStatus.ACTIVE:
                one.is_active(claim_id)
            elif claim is not None and claim.state in ENDING_OR_ENDED:
                one.is_lost(claim_id, None if _has_failed(claim) else self._failure_of(claim))
            elif claim is None and self._updater.settled:
                # Before the cell is settled, the host may still restore the claim.
                host, now_ms = one.hosts[claim_id][-1], self._updater.now_ms()
                one.is_lost(claim_id, FailedAttempt(claim_id, host, now_ms, UNKNOWN, "no longer known"))

    def _failure_of(self, claim: Claim) -> FailedAttempt:
        """Return the failure of a claim as it was read; the claim's stored reason has the details and the time."""
        return FailedAttempt(claim.claim_id, claim.host, self._updater.now_ms(), claim.end_reason or claim.state, "")


def _failure_in(change: Change) -> FailedAttempt | None:
    """Return the failure in an entry of the feed; None for any other end."""
    kind = change.fields.get("end_reason", "") if change.op == ClaimStatus.ENDING else change.op
    if kind not in _FAILURES:
        return None
    at_ms = int(change.entry_id.partition("-")[0])
    return FailedAttempt(change.fields["claim"], change.name, at_ms, kind, change.fields.get("reason", ""))


def _has_failed(claim: Claim) -> bool:
    """Return whether a claim's last placement has failed, so that it is pending or has ended for that reason."""
    return claim.state is ClaimStatus.PENDING or (claim.state in ENDING_OR_ENDED and claim.end_reason in _FAILURES)
