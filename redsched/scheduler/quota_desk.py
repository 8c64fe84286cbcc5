"""QuotaDesk: the quotas of projects, as operators declare them, and what is used of each.

A quota is put into every cell, the first of the settings before the others: what that one has counts.
"""

import asyncio
from collections.abc import Iterable, Sequence

from redsched.model import Quota
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.declared import DeclaredDesk
from redsched.scheduler.quota_count import QuotaCount
from redsched.scheduler.views import QuotaView
from redsched.store import Answer, Ledgers


class QuotaDesk(DeclaredDesk[QuotaView]):
    """Quotas, by project. What is used is exact: a ledger that may have lost writes is counted anew first."""

    word = "quota of project"

    def __init__(self, cells: Cells, ledgers: Ledgers, counting: QuotaCount) -> None:
        super().__init__(cells)
        self._ledgers = ledgers
        self._counting = counting

    async def put(self, quota: Quota) -> tuple[QuotaView, bool]:
        """Declare it, with all of its limits: as it is now, and whether it is new. Raises Settling.

        Limits below what is used end nothing; they let nothing more in.
        """
        await self._cells.catch_up()
        new = not self._is_known(quota.project)
        for cell in self._cells:
            await cell.store.put_quota(quota)
        if new:
            # What a ledger from before says may lack what was claimed since.
            await self._ledgers.drop(quota.project)
        await self._counting.counted(quota.project)
        declared = await self._counting.declaration(quota.project)
        if declared is not None:
            await self._ledgers.declare(quota.project, declared[0], declared[1].limits)
        return await self.get(quota.project), new

    def _names(self, cell: Cell) -> Iterable[str]:
        first = next(iter(self._cells))
        return cell.mirror.columns.declared.quotas if cell is first else ()

    async def _views(self, names: Sequence[str]) -> Sequence[QuotaView]:
        await asyncio.gather(*(self._counting.counted(name) for name in names))
        states = await self._ledgers.read(names)
        return [QuotaView(name, states[name].limits, states[name].used) for name in names if name in states]

    def _use(self, found: QuotaView) -> str:  # noqa: ARG002 - what is used is there without it
        return ""

    async def _take_back(self, cell: Cell, name: str, force: bool) -> Answer:  # noqa: ARG002 - nothing stands against it
        return await cell.store.delete_quota(name)

    async def _was_taken_back(self, found: QuotaView) -> None:
        await self._ledgers.drop(found.project)
