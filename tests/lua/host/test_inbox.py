"""Reading inboxes: notifications in order, over the connection that carries the agent's calls."""

from typing import Any

from redsched.store.cell import CellStore
from tests.support.builders.cells import claim_on, nothing_written, open_host


async def test_inboxes_are_read_together_and_after_an_entry(cell: CellStore, raw: Any) -> None:
    """Each host's notifications in order, with their epoch; a missing inbox is empty."""
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    placed = [await claim_on(cell, claim_id, "h1") for claim_id in ("a", "b")]
    await claim_on(cell, "c", "h2")
    async with nothing_written(raw):
        one, two, none = await cell.hosts.inboxes(["h1", "h2", "h3"])
        assert [
            (notification.op, notification.claim_id, notification.number, notification.token) for notification in one
        ] == [
            ("claim", "a", 1, placed[0].token),
            ("claim", "b", 2, placed[1].token),
        ]
        assert ([notification.claim_id for notification in two], none) == (["c"], [])
        assert [notification.claim_id for notification in await cell.hosts.inbox("h1", one[0].entry_id)] == ["b"]
        assert await cell.hosts.inboxes([]) == []
    epoch = (await cell.tick()).epoch
    assert {notification.epoch for notification in (*one, *two)} == {epoch}


async def test_an_inbox_is_read_over_the_connection_of_the_scripts(cell: CellStore, raw: Any) -> None:
    """The reader's connections, which may lead to another server after a failover, are not used."""
    await open_host(cell)
    await claim_on(cell)
    await cell.hosts.inbox("h1")  # now the server has the script; otherwise the call would be sent twice
    before = cell._cell.scripts.counters.calls
    await cell.hosts.inbox("h1")
    assert cell._cell.scripts.counters.calls == before + 1
