"""End what is due in one cell: claims whose lease has run out, and hosts that a claim has found down.

The sweeper does it each second. A request does it too, before it is refused: what comes free then is to be seen.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redsched import aio
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import OutcomeUnknown, StoreUnavailable
from redsched.pacing import Spread, paced
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by

BATCH = 100

STUCK_S = 5.0
"""How long claims that could not be ended are not tried again: every request that is refused would send them all."""


@contextmanager
def _not_the_callers() -> Iterator[None]:
    """Report an unknown outcome as StoreUnavailable: it says nothing about the outcome of the caller's own request."""
    try:
        yield
    except OutcomeUnknown as error:
        raise StoreUnavailable(error.detail) from error


class Expiry:
    """Ends what is due in one cell."""

    def __init__(self, store: CellStore, mirror: ReplicaUpdater) -> None:
        self._store = store
        self._mirror = mirror
        self._stuck = Spread[tuple[float, dict[str, int | None]]]()
        """Due claims that nothing could be done about a moment ago: when, and the versions that their hosts had."""

    async def expire_due(self) -> int:
        """End the claims whose deadline has passed, in batches; the number ended or being ended. Raises Unavailable."""
        with _not_the_callers():
            return await self._expire_due()

    async def mark_down(self, hosts: Sequence[str]) -> None:
        """Mark those of the hosts whose lease has lapsed. Raises Unavailable."""
        with _not_the_callers():
            await self._store.hosts.mark_down(hosts)

    async def _expire_due(self) -> int:
        changed = offset = 0
        now_s, version = aio.now_s(), self._mirror.columns.version
        await self._forget_stuck(now_s)
        while due := await self._store.due.expired(self._mirror.now_ms(), offset, BATCH):
            fresh = [one for one in due if one not in self._stuck]
            claims = await self._store.claims.read(fresh) if fresh else {}
            objects = {name for claim in claims.values() for name in counted_by(claim)}
            done = await self._store.claims.reconcile(fresh, objects) if fresh else 0
            changed += done
            # Those that nothing could be done about (their host has not attested) stay in front: step over them.
            offset += len(due) - done
            if done < len(fresh):
                for claim in claims.values():
                    self._stuck[claim.id] = (now_s, {host: version(host) for host in claim.hosts})
            if len(due) < BATCH:
                break
        return changed

    async def _forget_stuck(self, now_s: float) -> None:
        """Try again what was stuck for a while, or of which a host has changed: it has attested, or was written off."""
        version = self._mirror.columns.version
        async for one in paced(self._stuck):
            at_s, seen = self._stuck.get(one, (0.0, {}))
            if now_s - at_s >= STUCK_S or any(version(host) != was for host, was in seen.items()):
                self._stuck.pop(one, None)
