"""How late the periodic work on a cell is: agents' heartbeats, expiry and reconciliation.

Each figure is read from the front of an index of the store, so it costs the same for any number of hosts and claims.
"""

from collections.abc import Callable, Sequence

from redsched.cache.updater import ReplicaUpdater
from redsched.store.cell import CellStore
from redsched.store.codec.replies import Change


class Delays:
    """The delays of one cell in seconds, as of the last sweep; 0 if nothing is late.

    `agent_s` is the time since the last report or heartbeat of the live host whose lease ends next, and `agent_part`
    that as a part of its lease: agents send three heartbeats per lease, so more than 0.4 is late. `expiry_s` is the
    time since the oldest deadline of a claim that was not handled yet; `reconcile_s` the same for reconciliation.
    """

    def __init__(self, store: CellStore, updater: ReplicaUpdater) -> None:
        self._store, self._updater = store, updater
        self.agent_s = self.agent_part = self.expiry_s = self.reconcile_s = 0.0

    async def read(self) -> None:
        """Read the delays. Raises StoreUnavailable."""
        now_ms = self._updater.now_ms()
        renewed_ms, lease_ms = await self._store.hosts.next_lease(now_ms) or (now_ms, 0)
        deadline_ms, reconcile_ms = await self._store.due.oldest_ms()
        self.agent_s = _seconds(now_ms, renewed_ms)
        self.agent_part = self.agent_s * 1000 / lease_ms if lease_ms else 0.0
        self.expiry_s, self.reconcile_s = _seconds(now_ms, deadline_ms), _seconds(now_ms, reconcile_ms)


class FeedLag:
    """A listener of a replica: how old the oldest change of each batch is when it is applied, by the store's clock."""

    def __init__(self, updater: ReplicaUpdater, observe: Callable[[float], None]) -> None:
        self._updater, self._observe = updater, observe

    def on_changes(self, changes: Sequence[Change]) -> None:
        """Observe the age of the first change, in seconds."""
        written_ms = int(changes[0].entry_id.partition("-")[0])
        self._observe(max(0, self._updater.now_ms() - written_ms) / 1000)

    def on_reset(self) -> None:
        """Do nothing: a snapshot has no age."""


def _seconds(now_ms: int, since_ms: int | None) -> float:
    """Return the time since an instant; 0 if it is to come, or there is none."""
    return 0.0 if since_ms is None else max(0, now_ms - since_ms) / 1000
