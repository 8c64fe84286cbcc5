"""Ledgers: what the claims of each project take of its quota. They lie outside every cell, each under its own hash tag.

quota_reserve before claims are made, quota_hold with what they really take; quota_open, quota_count and quota_close to
count a ledger anew from the cells; quota_declare and quota_drop for the quota itself; quota_mend for audits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from redsched.errors import StoreUnavailable
from redsched.model import Amounts
from redsched.store.answers import Answer
from redsched.store.base import MOST_TRIES, as_answer, chunks, flat
from redsched.store.fields import LIMIT
from redsched.store.keys import LedgerKeys
from redsched.store.ledger_reads import LedgerReads
from redsched.store.outcomes import Outcome

Epochs = Mapping[str, str]
"""The present epoch of each cell, by its name."""


@dataclass(frozen=True, slots=True)
class Taking:
    """What is taken under one id of a ledger, by class and `claims`; for which claim and in which cell ('': as it is).

    Amounts of nothing: that it has ended.
    """

    id: str
    amounts: Amounts = field(default_factory=dict)
    claim: str = ""
    cell: str = ""


class Ledgers(LedgerReads):
    """One coroutine for each script about a ledger, and reads of them. Raises StoreUnavailable, OutcomeUnknown."""

    async def declare(self, project: str, token: str, limits: Amounts) -> Answer:
        """Change the limits. OK | SAME (it holds these or later ones) | UNKNOWN. (quota_declare.lua)

        `token`: epoch and version of the declaration in the first cell.
        """
        return await self._run("quota_declare", project, (), (token, *_limits(limits)))

    async def reserve(self, project: str, by: str, takings: Sequence[Taking], lease_ms: int, epochs: Epochs) -> Answer:
        """Take amounts, all within the limits or none. (quota_reserve.lua)

        OK | SAME (facts: claim and cell of each) | OVER (facts: class, limit, used, asked of each that is exceeded) |
        LATE | SETTLING | UNKNOWN. `by` names this very call.
        """
        arguments = chain.from_iterable((one.id, one.claim, one.cell, *_amounts(one)) for one in takings)
        ids = [one.id for one in takings]
        return await self._run("quota_reserve", project, ids, (by, lease_ms, *_epochs(epochs), *arguments))

    async def hold(self, project: str, by: str, takings: Sequence[Taking]) -> Answer:
        """Say what claims really take. OK (facts: ids that are another's by now) | SETTLING | UNKNOWN. (quota_hold.lua)

        `by`: the call that reserved them.
        """
        arguments = chain.from_iterable((one.id, *_amounts(one)) for one in takings)
        return await self._run("quota_hold", project, [one.id for one in takings], (by, *arguments))

    async def open(
        self, project: str, count: str, lease_ms: int, epochs: Epochs, token: str, limits: Amounts
    ) -> Answer:
        """Begin to count anew. OK | SAME (it has been counted in these epochs) | OTHER (a count runs). (quota_open.lua)

        `count` names this very count; `token` as in `declare`.
        """
        arguments = (count, lease_ms, *_epochs(epochs), token, *_limits(limits))
        return await self._run("quota_open", project, (), arguments)

    async def count(self, project: str, count: str, lease_ms: int, takings: Sequence[Taking]) -> Answer:
        """What a running count has found of some ids. OK | STALE (it does not run any more). (quota_count.lua)"""
        answer = None
        for part in chunks(takings):
            arguments = chain.from_iterable((one.id, one.claim, one.cell, *_amounts(one)) for one in part)
            ids = [one.id for one in part]
            answer = await self._run("quota_count", project, ids, (count, lease_ms, *arguments))
            if answer.outcome != "OK":
                break
        assert answer is not None  # there is always one part
        return answer

    async def close(self, project: str, count: str, epochs: Epochs) -> Answer:
        """End a count: the ledger can be relied on. OK | SAME | STALE. (quota_close.lua)"""
        return await self._run("quota_close", project, (), (count, *_epochs(epochs)))

    async def mend(self, project: str, ids: Iterable[str], write: bool) -> Answer:
        """Hold sums, list and deadlines to the entries; `write`: put right what differs. OK | SETTLING | UNKNOWN.

        Facts: kind, id or class, found, should of each fault. `ids`: those that are known of. (quota_mend.lua)
        """
        known = set(ids) | await self.ids(project)
        for _ in range(MOST_TRIES):
            named = sorted(known)
            answer = await self._run("quota_mend", project, named, (int(write), *named))
            if answer.outcome is not Outcome.RETRY:
                return answer
            known |= set(answer.facts)
        raise StoreUnavailable(f"the ledger of {project} changes faster than it can be read: try again")

    async def drop(self, project: str, ids: Iterable[str] = ()) -> None:
        """Forget a ledger: it is counted anew, if the project has a quota. (quota_drop.lua)

        `ids`: of entries that it may have beside those it lists.
        """
        keys = LedgerKeys(project)
        for part in chunks(sorted(await self.ids(project) | set(ids))):
            await self._runner.run("quota_drop", (*keys.head, *map(keys.claim, part)), ())

    async def _run(self, script: str, project: str, ids: Iterable[str], arguments: Sequence[str | int]) -> Answer:
        keys = LedgerKeys(project)
        return as_answer(await self._runner.run(script, (*keys.head, *map(keys.claim, ids)), arguments))


def _amounts(taking: Taking) -> tuple[str | int, ...]:
    return (len(taking.amounts), *flat(taking.amounts))


def _epochs(epochs: Epochs) -> tuple[str | int, ...]:
    return (len(epochs), *flat(epochs))


def _limits(limits: Amounts) -> list[str | int]:
    return flat((f"{LIMIT}{name}", limit) for name, limit in limits.items())
