"""The quotas of projects, as operators declare them, and their usage.

A quota is stored in every cell. The first cell of the settings is written first, and is authoritative.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence

from redsched import aio
from redsched.errors import ClaimState, Settling
from redsched.model import Quota
from redsched.model.conditions import IfMatch
from redsched.model.records.declared import QuotaView
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.declared.declarations import DeclaredService, Stored
from redsched.scheduler.quotas.shares import QuotaShares
from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import ScriptResult

WITHIN_S = 5.0
AGAIN_AFTER_S = 0.05


class QuotaService(DeclaredService[QuotaView]):
    """Quotas, by project. Usage is exact in each cell; reading it raises Settling while hosts may restore claims.

    Over several cells it is the sum of values read one after another, so not of a single instant.
    """

    word, called = "quota of project", "project"
    kind = Kind.QUOTA

    def __init__(self, cells: Cells, shares: QuotaShares) -> None:
        super().__init__(cells)
        self._shares = shares

    async def get(self, project: str) -> QuotaView:
        """Return the quota of a project, and its usage. Raises NotFound, Settling."""
        return await super().get(project)

    async def tag(self, project: str) -> str:
        """Return the tag of a quota's declaration, for `if_match`. Raises NotFound, Settling."""
        return await super().tag(project)

    async def delete(self, project: str, force: bool = False, if_match: IfMatch = None) -> None:
        """Delete the quota of a project, which then has no limits. `force` changes nothing: claims do not prevent it.

        Raises NotFound, Settling, PreconditionFailed.
        """
        await super().delete(project, force, if_match)

    async def put(self, quota: Quota, if_match: IfMatch = None) -> tuple[QuotaView, bool]:
        """Declare a quota with all of its limits. Returns its view, and whether it is new.

        Limits below the current usage end no claims, but admit no more. Raises PreconditionFailed, Settling, and
        ClaimState if a project whose name differs only in case has a quota: people would take one for the other.
        """
        await self._refuse_other_case(quota.project)
        stored = await self._stored([quota.project])
        cells = [one.name for one in self._cells]

        def declare(cell: Cell, tags: IfMatch) -> Awaitable[ScriptResult]:
            return cell.store.declared.put_quota(quota, cells, tags)

        await self._put(stored, quota.project, declare, if_match)
        await self._divided(quota.project)
        return await self.get(quota.project), not self._is_in(stored, quota.project)

    async def _refuse_other_case(self, project: str) -> None:
        for name in await self._homes()[0].store.declared.names(self.kind):
            if name != project and name.lower() == project.lower():
                raise ClaimState(
                    f"project {project} differs only in case from {name}, which has a quota: use that name, "
                    "or delete its quota first"
                )

    async def _divided(self, project: str) -> None:
        """Divide the limits until every cell has its share; another scheduler may divide too. Raises Settling."""
        until = aio.now_s() + WITHIN_S
        while True:
            await self._shares.divide(project)
            if await self._shares.is_divided(project):
                return
            if aio.now_s() > until:
                raise Settling(f"the quota of project {project} is being divided over the cells: declare it again")
            await asyncio.sleep(AGAIN_AFTER_S)

    def _homes(self) -> Sequence[Cell]:
        return tuple(self._cells)[:1]

    async def _views(self, stored: Stored, names: Sequence[str]) -> Sequence[QuotaView]:  # noqa: ARG002 - it reads usage anew
        if names:
            await self._cells.refuse_unsettled(f"what project {names[0]} uses of its quota")
        return [view for name in names if (view := await self._view(name)).limits]

    async def _view(self, project: str) -> QuotaView:
        states = list((await self._shares.read(project)).values())
        used: Counter[str] = Counter()
        for one in states:
            used.update(one.used)
        limits = states[0].limits
        return QuotaView(project, limits, {**dict.fromkeys(limits, 0), **used})

    def _use(self, found: QuotaView) -> str:  # noqa: ARG002 - usage does not prevent the deletion of a quota
        return ""

    async def _delete(self, cell: Cell, name: str, force: bool, if_match: IfMatch) -> ScriptResult:  # noqa: ARG002 - nothing prevents it
        return await cell.store.declared.delete_quota(name, if_match)
