"""Expire what is due in one cell: end claims whose lease has expired, and mark hosts down that a claim call found down.

The sweeper does this each second. A request also does it before it is refused, so that it can use the amounts freed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from redsched import aio
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import OutcomeUnknown, StoreUnavailable
from redsched.pacing import Spread, paced
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by
from redsched.store.commands.base import chunks

BATCH = 100
FAR_MS = 120_000
"""How far ahead a time must be to be looked at when an epoch begins. Usual leases and all pauses are shorter."""
END_OF_TIME = 2**53

STUCK_S = 5.0
"""How long claims that could not be ended are skipped: otherwise every refused request would retry all of them."""


@contextmanager
def _as_unavailable() -> Iterator[None]:
    """Convert OutcomeUnknown into StoreUnavailable, because it does not concern the caller's own request."""
    try:
        yield
    except OutcomeUnknown as error:
        raise StoreUnavailable(error.detail, public=error.public) from error


class Expiry:
    """Expires claims and marks hosts down in one cell."""

    def __init__(self, store: CellStore, updater: ReplicaUpdater) -> None:
        self._store = store
        self._updater = updater
        self.claims_expired = self.hosts_down = 0
        """How many claims this has ended or begun to end, and how many hosts it has marked down."""
        self._stuck = Spread[tuple[float, dict[str, int | None]]]()
        """Due claims that could not be ended recently: when that was, and the versions of their hosts at that time."""

    async def expire_due(self) -> int:
        """End the claims whose deadline has passed, in batches. Returns how many have ended or are ending.

        A connection that only reads leaves them to the schedulers. Raises Unavailable.
        """
        if self._store.is_read_only:
            return 0
        with _as_unavailable():
            return await self._expire_due()

    async def mark_down(self, hosts: Sequence[str]) -> None:
        """Mark the given hosts down if their lease has lapsed. Raises Unavailable."""
        with _as_unavailable():
            self.hosts_down += await self._store.hosts.mark_down(hosts)

    async def correct_times(self, now_ms: int) -> None:
        """Bring near what an earlier epoch, whose clock was ahead, has put off: ends of leases, and retries.

        Without this a host that died then would be up, and a claim that failed then would wait, until the clock is
        there again. The scripts decide what is too far ahead. Raises Unavailable.
        """
        if self._store.is_read_only:
            return
        with _as_unavailable():
            far_ms = now_ms + FAR_MS
            for names in chunks(await self._store.hosts.lapsed(far_ms, END_OF_TIME, 0, -1), BATCH):
                if names:
                    await self._store.hosts.mark_down(names)
            for ids in chunks(await self._store.due.reconciled_after(far_ms), BATCH):
                if ids:
                    claims = await self._store.claims.read(ids)
                    objects = {name for claim in claims.values() for name in counted_by(claim)}
                    await self._store.claims.reconcile(ids, objects)

    async def _expire_due(self) -> int:
        changed = offset = 0
        now_s = aio.now_s()
        await self._forget_stuck(now_s)
        while due := await self._store.due.expired(self._updater.now_ms(), offset, BATCH):
            fresh = [one for one in due if one not in self._stuck]
            claims = await self._store.claims.read(fresh) if fresh else {}
            objects = {name for claim in claims.values() for name in counted_by(claim)}
            done = await self._store.claims.reconcile(fresh, objects) if fresh else 0
            changed += done
            self.claims_expired += done
            # Claims that cannot be ended (their host has not attested) stay at the front: step over them.
            offset += len(due) - done
            if done < len(fresh):
                for claim in claims.values():
                    self._stuck[claim.claim_id] = (now_s, self._versions(claim.hosts))
            if len(due) < BATCH:
                break
        return changed

    def _versions(self, hosts: Iterable[str]) -> dict[str, int | None]:
        return {host: self._updater.columns.version(host) for host in hosts}

    async def _forget_stuck(self, now_s: float) -> None:
        """Forget claims that were skipped for STUCK_S, or whose host has changed: it may have attested."""
        async for one in paced(self._stuck):
            at_s, seen = self._stuck.get(one, (0.0, {}))
            if now_s - at_s >= STUCK_S or self._versions(seen) != seen:
                self._stuck.pop(one, None)
