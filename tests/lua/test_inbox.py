"""Reading inboxes: hints in order, over the connection of the agent's own words."""

from typing import Any

from redsched.store.cell import CellStore
from tests.support.cells import claim_on, nothing_written, open_host


async def test_inboxes_are_read_together_and_after_an_entry(cell: CellStore, raw: Any) -> None:
    """Each host's hints in order, with the epoch that stamps them; an inbox that is not there is empty."""
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    placed = [await claim_on(cell, claim_id, "h1") for claim_id in ("a", "b")]
    await claim_on(cell, "c", "h2")
    async with nothing_written(raw):
        one, two, none = await cell.hosts.inboxes(["h1", "h2", "h3"])
        assert [(hint.op, hint.claim_id, hint.number, hint.token) for hint in one] == [
            ("claim", "a", 1, placed[0].token),
            ("claim", "b", 2, placed[1].token),
        ]
        assert ([hint.claim_id for hint in two], none) == (["c"], [])
        assert [hint.claim_id for hint in await cell.hosts.inbox("h1", one[0].entry_id)] == ["b"]
        assert await cell.hosts.inboxes([]) == []
    epoch = (await cell.tick()).epoch
    assert {hint.epoch for hint in (*one, *two)} == {epoch}


async def test_an_inbox_is_read_over_the_connection_of_the_scripts(cell: CellStore, raw: Any) -> None:
    """The reader's connections, which may lead to another server after a failover, are not asked."""
    await open_host(cell)
    await claim_on(cell)
    await cell.hosts.inbox("h1")  # from here on the server has the script: else the call is sent twice
    before = cell._cell.scripts.counters.calls
    await cell.hosts.inbox("h1")
    assert cell._cell.scripts.counters.calls == before + 1
