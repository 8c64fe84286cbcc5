"""Scripts about the share that a cell has of a project's quota, where several cells share its limits.

quota_close and quota_share divide the limits; quota_give, quota_take and quota_given hand a part over to another cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.model import Amounts
from redsched.model.validation import parse_int
from redsched.store.codec.fields import LIMIT
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient

USED = "used."
SHARE = "share."
GIVEN = "given."


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a cell has handed over to another one and not heard back of. `at_ms`: when, by the clock of the giver."""

    id: str
    number: str
    at_ms: int
    amounts: Amounts

    @classmethod
    def parse(cls, words: str) -> "Transfer":
        """Read a record as the giver's hash has it."""
        transfer_id, number, at_ms, *amounts = words.split()
        pairs = (one.partition("=") for one in amounts)
        return cls(transfer_id, number, parse_int(at_ms, 0), {name: parse_int(amount, 0) for name, _, amount in pairs})


@dataclass(frozen=True, slots=True)
class QuotaState:
    """A project's quota as one cell has it.

    `share` is of `division`, in `share_epoch`; '': closed, since `closed_at_ms`, until it is given one. `given` are
    transfers by receiver.
    """

    limits: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    share: Amounts = field(default_factory=dict)
    cells: str = ""
    division: str = ""
    share_epoch: str = ""
    closed_at_ms: int = 0
    version: str = ""
    given: Mapping[str, Transfer] = field(default_factory=dict)

    @classmethod
    def parse(cls, fields: Mapping[str, str]) -> "QuotaState":
        """Read a hash. What somebody has made unreadable by hand lets nothing in."""

        def under(prefix: str) -> dict[str, str]:
            return {name[len(prefix) :]: value for name, value in fields.items() if name.startswith(prefix)}

        def amounts(prefix: str) -> dict[str, int]:
            return {name: parse_int(value, 0) for name, value in under(prefix).items()}

        return cls(
            amounts(LIMIT),
            amounts(USED),
            amounts(SHARE),
            fields.get("cells", ""),
            fields.get("division", ""),
            fields.get("share_epoch", ""),
            parse_int(fields.get("closed_at_ms", "0"), 0),
            fields.get("version", ""),
            {cell: Transfer.parse(words) for cell, words in under(GIVEN).items()},
        )


class QuotaCommands:
    """One coroutine for each of them. All are about one division, and STALE where the cell has no share of it."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def close(self, project: str, former: str, division: str) -> tuple[ScriptResult, QuotaState]:
        """Begin a division here, after `former`. OK | ALREADY_DONE | STALE | SETTLING | UNKNOWN. (quota_close.lua)

        Until `quota_share` nothing more is let in. What the cell has of the quota is the second answer.
        """
        answer = await self._about_quota("quota_close", project, former, division)
        fields = dict(zip(answer.facts[::2], answer.facts[1::2], strict=True))
        return answer, QuotaState.parse(fields)

    async def share(self, project: str, division: str, epoch: str, version: str, share: Amounts) -> ScriptResult:
        """Give the cell its share, where nothing has changed since it was closed.

        OK | ALREADY_DONE | STALE. (quota_share.lua) `epoch` is that of the cell before any was closed for this
        division, `version` what `quota_close` was answered.
        """
        return await self._about_quota("quota_share", project, division, epoch, version, *flat(share))

    async def give(
        self, project: str, division: str, to: str, transfer_id: str, wanted: Amounts
    ) -> tuple[Outcome, Transfer | None]:
        """Take what can be spared of this out of the cell's share, for another cell. (quota_give.lua)

        OK | ALREADY_DONE | IN_USE (another transfer is on its way there, and is the second answer) | FULL | STALE.
        """
        answer = await self._about_quota("quota_give", project, division, to, transfer_id, *flat(wanted))
        return answer.outcome, Transfer.parse(" ".join(answer.facts)) if answer.facts else None

    async def take(self, project: str, division: str, giver: str, transfer: Transfer) -> ScriptResult:
        """Add to the cell's share what another one has handed over, once.

        OK | ALREADY_DONE | ENDED | STALE. (quota_take.lua)
        """
        words = (division, giver, transfer.number, 0, *flat(transfer.amounts))
        return await self._about_quota("quota_take", project, *words)

    async def void(self, project: str, division: str, giver: str, transfer: Transfer) -> ScriptResult:
        """Close the cell to a transfer. OK (it has not had it) | ALREADY_DONE (it has) | STALE. (quota_take.lua)"""
        return await self._about_quota("quota_take", project, division, giver, transfer.number, 1)

    async def close_transfer(
        self, project: str, division: str, to: str, transfer: Transfer, back: bool
    ) -> ScriptResult:
        """Forget a transfer; `back`: what was handed over returns. OK | ALREADY_DONE | STALE. (quota_given.lua)"""
        return await self._about_quota("quota_given", project, division, to, transfer.number, int(back))

    async def _about_quota(self, script: str, project: str, *arguments: str | int) -> ScriptResult:
        return await self._cell.answer(script, (self._cell.keys.quota(project),), arguments)
