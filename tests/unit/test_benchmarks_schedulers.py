"""The benchmark of several schedulers: its changes are those of claims to a replica, and how it rates packing."""

from benchmarks.following import WRITE
from benchmarks.schedulers import _quality
from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.store.store import Store
from tests.support.builders.cells import open_host, raw_client, usual_settings


def test_packing_is_rated_by_the_hosts_in_use_and_spreading_by_their_differences() -> None:
    assert _quality("pack", [64, 64, 0, 0]) == 1
    assert _quality("pack", [32, 32, 32, 32]) == 2
    assert _quality("spread", [32, 32, 32, 32]) == 0
    assert _quality("spread", [64, 0, 64, 0]) == 32


async def test_a_replica_applies_its_changes_without_reading_hosts_again(
    clean_store: str,
) -> None:
    """Otherwise the benchmark would measure something else than following a feed of claims."""
    async with Store.connect(clean_store, usual_settings()) as store, raw_client(clean_store) as raw:
        cell = store.cell("c1")
        await cell.init()
        for name in ("h1", "h2"):
            await open_host(cell, name, VCPU=8, MEMORY_MB=8192)
        replica = await take_snapshot(cell)
        names = ["h1", "h2", "h1"]
        await raw.eval(WRITE, 2 + len(names), cell.keys.meta, cell.keys.changes, *map(cell.keys.host, names), *names)
        poll = await cell.feed.poll(replica.entry_id, 10)
        assert poll.clock is not None
        assert await replica.advance(cell, poll.changes, poll.clock.seq) == poll.changes
        assert (len(poll.changes), replica.ahead) == (3, False)
        assert difference(replica.columns, (await take_snapshot(cell)).columns) == []
        row = replica.columns.row("h1")
        assert row is not None
        assert replica.columns.claims[row] == 2
