"""The indexes of claims by time: their deadlines, and when a scheduler must reconcile them."""

from redsched.pacing import Spread
from redsched.store.commands.base import CHUNK, CellClient


class DueCommands:
    """Reads of both indexes."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def expired(self, now_ms: int, offset: int, most: int) -> list[str]:
        """Return the ids of claims whose deadline has passed, oldest first."""
        with self._cell.reading():
            return list(
                await self._cell.reader.zrange(
                    self._cell.keys.deadlines, "-inf", str(now_ms), byscore=True, offset=offset, num=most
                )
            )

    async def to_reconcile(self, now_ms: int, offset: int, most: int) -> list[str]:
        """Return the ids of claims whose reconciliation is due, longest overdue first."""
        with self._cell.reading():
            return list(
                await self._cell.reader.zrange(
                    self._cell.keys.reconcile, "-inf", str(now_ms), byscore=True, offset=offset, num=most
                )
            )

    async def reconciled_after(self, at_ms: int) -> list[str]:
        """Return the ids of all claims whose reconciliation is due after a time (Unix, ms)."""
        with self._cell.reading():
            return list(await self._cell.reader.zrange(self._cell.keys.reconcile, f"({at_ms}", "+inf", byscore=True))

    async def oldest_ms(self) -> tuple[int | None, int | None]:
        """Return the earliest deadline, and the earliest reconciliation (Unix, ms); None if there is none."""
        with self._cell.reading():
            first = [
                await self._cell.reader.zrange(key, 0, 0, withscores=True)
                for key in (self._cell.keys.deadlines, self._cell.keys.reconcile)
            ]
        deadline, reconcile = (int(found[0][1]) if found else None for found in first)
        return deadline, reconcile

    async def reconcile_at_ms(self, claim_id: str) -> int | None:
        """Return when a claim must be reconciled (Unix, ms); None if it need not be."""
        with self._cell.reading():
            score = await self._cell.reader.zscore(self._cell.keys.reconcile, claim_id)
        return None if score is None else int(score)

    async def deadlines(self) -> Spread[int]:
        """Return all deadlines: claim id -> Unix ms."""
        return await self._times(self._cell.keys.deadlines)

    async def reconcile_times(self) -> Spread[int]:
        """Return all entries of `reconcile`: claim id -> Unix ms."""
        return await self._times(self._cell.keys.reconcile)

    async def _times(self, key: str) -> Spread[int]:
        """Return a sorted set of times, read in pages by time: an entry postponed meanwhile has its new time."""
        found, since, passed = Spread[int](), float("-inf"), 0
        while True:
            with self._cell.reading():
                page = await self._cell.reader.zrange(
                    key, str(since), "+inf", byscore=True, offset=passed, num=CHUNK, withscores=True
                )
            found.update((name, int(at_ms)) for name, at_ms in page)
            if len(page) < CHUNK:
                return found
            last = page[-1][1]
            passed = (passed if last == since else 0) + sum(at_ms == last for _, at_ms in page)
            since = last
