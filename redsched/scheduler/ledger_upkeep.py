"""Auditing and mending the ledgers of quotas, over all cells of a scheduler.

Within a ledger one script works out anew what its entries say. What an entry should say is settled with the cells, as
after any crash. Where neither will do, the ledger is forgotten and counted anew from the claims.
"""

from collections.abc import Sequence

import structlog

from redsched.errors import RedschedError
from redsched.scheduler.audit_again import LOOKS, reason_of, seen_again, with_mended
from redsched.scheduler.audit_ledgers import ledger_problems
from redsched.scheduler.cells import Cells
from redsched.scheduler.identity import unique
from redsched.scheduler.quotas import Quotas
from redsched.scheduler.views import Mend, Problem
from redsched.store import Ledgers
from redsched.store.ledger_reads import FREED

MOST_TRIES = 5
ORDER = (Mend.COUNT, Mend.LEDGER, Mend.SETTLE)
"""What is settled is settled with sums that are right."""

log = structlog.get_logger(__name__)


class LedgerUpkeep:
    """That of all ledgers. What it mends is told in the event log of the first cell."""

    def __init__(self, cells: Cells, ledgers: Ledgers, quotas: Quotas) -> None:
        self._cells = cells
        self._ledgers = ledgers
        self._quotas = quotas

    async def audit(self) -> tuple[Problem, ...]:
        """What is wrong: what looks so, looked at again. Raises StoreUnavailable."""
        problems = tuple(await ledger_problems(self._cells, self._ledgers))
        for _ in range(LOOKS - 1):
            if not problems:
                break
            problems = seen_again(problems, await ledger_problems(self._cells, self._ledgers))
        return problems

    async def repair(self) -> tuple[Problem, ...]:
        """Audit, mend, and look again. Raises StoreUnavailable."""
        before = await self.audit()
        if not before:
            return ()
        # What the pictures do not know yet, an epoch above all, is not settled by.
        await self._cells.catch_up()
        await self._mend(before)
        return with_mended(before, await self.audit())

    async def _mend(self, problems: Sequence[Problem]) -> None:
        done: set[tuple[Mend, str, str]] = set()
        for problem in sorted(problems, key=lambda one: ORDER.index(one.mend or Mend.SETTLE)):
            project, _, name = problem.subject.partition("/")
            kind = problem.mend or Mend.SETTLE
            step = (kind, project, name if kind is Mend.SETTLE else "")
            if step not in done:
                done.add(step)
                outcome = await self._outcome(*step)
                log.warning("mended", thing=problem.thing, problem=problem.detail, outcome=outcome)
                await self._tell(problem, project, step[2])

    async def _outcome(self, kind: Mend, project: str, known_as: str) -> str:
        try:
            if kind is Mend.SETTLE:
                return await self._settle(project, known_as)
            ids = (await self._ledgers.all_ids()).get(project, set())
            if kind is Mend.LEDGER:
                return (await self._ledgers.mend(project, ids, write=True)).outcome
            entries = await self._ledgers.entries(project, ids)
            # A late copy of a reservation is not to bring back what has been freed.
            await self._ledgers.drop(project, {one for one, entry in entries.items() if entry.state != FREED})
            return "counted" if await self._quotas.counting.counted(project) else "dropped"
        except RedschedError as error:
            return error.detail

    async def _settle(self, project: str, known_as: str) -> str:
        for _ in range(MOST_TRIES):
            # Another one may be at it, and not through yet.
            if await self._quotas.settler.settle(project, [known_as]):
                return "settled"
        return "another one is at it"

    async def _tell(self, problem: Problem, project: str, claim: str) -> None:
        said = {"thing": f"quota:{project}", "project": project, **({"claim": claim} if claim else {})}
        await next(iter(self._cells)).store.told(unique(), reason_of(problem), said)
