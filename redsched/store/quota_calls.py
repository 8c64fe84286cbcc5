"""Scripts about a cell's part in a project's quota: quota_recall, quota_mark. What is taken stands in ledgers.py."""

from collections.abc import Sequence
from dataclasses import dataclass

from redsched.model import Amounts
from redsched.store.answers import Answer
from redsched.store.reads import Reads


@dataclass(frozen=True, slots=True)
class Marked:
    """A claim that a quota counts: `origin` is the id by which its owner knows it, where that is another."""

    id: str
    origin: str
    amounts: Amounts


class QuotaCalls(Reads):
    """One coroutine for each of them."""

    async def recall(self, project: str) -> Answer:
        """Have what was decided before this be decided again. OK | UNKNOWN | SETTLING. (quota_recall.lua)"""
        return await self._answer("quota_recall", (self.keys.quota(project),), (project,))

    async def mark(self, project: str, ids: Sequence[str]) -> tuple[str, list[Marked]]:
        """The present epoch, and those of the claims that are the project's and have not ended. (quota_mark.lua)

        From here on their end is told to the project's ledger.
        """
        reply = await self._run("quota_mark", [self.keys.claim(one) for one in ids], (project,))
        found, rest = [], iter(reply[3:])
        for number in rest:
            origin, length = next(rest), next(rest)
            amounts = {str(next(rest)): int(next(rest)) for _ in range(length)}
            found.append(Marked(ids[number - 1], origin, amounts))
        return str(reply[1]), found
