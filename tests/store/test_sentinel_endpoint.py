"""What a process takes from the replies of Sentinels. With real ones: tests/faults/test_sentinel.py."""

import pytest

from redsched.settings import Settings
from redsched.store.topology import sentinel
from redsched.store.topology.sentinel import SentinelEndpoint
from redsched.store.topology.url import Address, parse
from tests.support.waiting import wait_until

OLD, NEW, NEWER = ("old", 6379), ("new", 6379), ("newer", 6379)


async def test_a_sentinel_that_missed_a_failover_leads_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the former primary, in an older epoch of the configuration. Only a new connect may go there."""
    replies: list[tuple[Address, int]] = []
    asked: list[Address] = []

    async def ask(_: SentinelEndpoint) -> tuple[Address, int]:
        asked.append(replies[0][0])
        return replies[0]

    monkeypatch.setattr(SentinelEndpoint, "_ask", ask)
    monkeypatch.setattr(sentinel, "RECHECK_S", 0.0)
    place = SentinelEndpoint(parse("sentinel://s1,s2/redsched"), Settings())

    async def recheck(named: Address, failovers: int) -> Address | None:
        replies[:] = [(named, failovers)]
        asked.clear()

        def is_done() -> bool:
            place.recheck()
            return len(asked) > 1  # so the reply to the first query has been processed

        await wait_until(is_done)
        return place.address

    try:
        place.recheck()
        assert place.address is None  # nothing is asked before the first connect
        replies[:] = [(NEW, 2)]
        assert await place.find() == NEW
        assert await recheck(OLD, 1) == NEW
        assert await recheck(NEWER, 3) == NEWER
        replies[:] = [(OLD, 1)]
        assert await place.find() == OLD
    finally:
        await place.close()
