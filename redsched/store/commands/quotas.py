"""Scripts about a cell's share of a project's quota, if several cells share its limits.

quota_close and quota_share divide the limits; quota_give, quota_take and quota_given transfer a part to another cell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.model import Amounts
from redsched.model.validation import parse_int
from redsched.store.codec.fields import LIMIT
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient

USED = "used."
SHARE = "share."
GIVEN = "given."


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer that a cell has given and that is not confirmed. `at_ms` is its time by the clock of the giver."""

    id: str
    number: str
    at_ms: int
    amounts: Amounts

    @classmethod
    def parse(cls, fields: str) -> "Transfer":
        """Parse a record of the giver's hash."""
        transfer_id, number, at_ms, *amounts = fields.split()
        pairs = (one.partition("=") for one in amounts)
        return cls(transfer_id, number, parse_int(at_ms, 0), {name: parse_int(amount, 0) for name, _, amount in pairs})


@dataclass(frozen=True, slots=True)
class QuotaState:
    """The state of a project's quota in one cell.

    `share` is that of `division`, in `share_epoch`. A `share_epoch` of '' means that the cell was closed at
    `closed_at_ms` and has no share yet. `given` has the unconfirmed transfers by receiver.
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
        """Parse a hash. Amounts that cannot be read count as 0, so that they admit nothing."""

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
            {cell: Transfer.parse(text) for cell, text in under(GIVEN).items()},
        )


class QuotaCommands:
    """One coroutine for each script. All are about one division, and return STALE if the cell has no share of it."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def close(self, project: str, former: str, division: str) -> tuple[ScriptResult, QuotaState]:
        """Close the quota in this cell for a division that follows `former`. (quota_close.lua)

        OK | ALREADY_DONE | STALE | SETTLING | UNKNOWN. Until `share` is called, the quota admits nothing more. The
        second result is the cell's state of the quota.
        """
        answer = await self._about_quota("quota_close", project, former, division)
        fields = dict(zip(answer.facts[::2], answer.facts[1::2], strict=True))
        return answer, QuotaState.parse(fields)

    async def share(self, project: str, division: str, epoch: str, version: str, share: Amounts) -> ScriptResult:
        """Give the cell its share, if nothing has changed since it was closed. (quota_share.lua)

        OK | ALREADY_DONE | STALE. `epoch` is that of the cell before any cell was closed for this division, `version`
        the one that `close` returned.
        """
        return await self._about_quota("quota_share", project, division, epoch, version, *flat(share))

    async def give(
        self, project: str, division: str, to: str, transfer_id: str, wanted: Amounts
    ) -> tuple[Outcome, Transfer | None]:
        """Transfer from the cell's share to another cell what it can spare of these amounts. (quota_give.lua)

        OK | ALREADY_DONE | IN_USE (another transfer to that cell is pending, and is the second result) | FULL | STALE.
        """
        answer = await self._about_quota("quota_give", project, division, to, transfer_id, *flat(wanted))
        return answer.outcome, Transfer.parse(" ".join(answer.facts)) if answer.facts else None

    async def take(self, project: str, division: str, giver: str, transfer: Transfer) -> ScriptResult:
        """Add to the cell's share what another cell has transferred, once. (quota_take.lua)

        OK | ALREADY_DONE | ENDED | STALE.
        """
        fields = (division, giver, transfer.number, 0, *flat(transfer.amounts))
        return await self._about_quota("quota_take", project, *fields)

    async def void(self, project: str, division: str, giver: str, transfer: Transfer) -> ScriptResult:
        """Close the cell to a transfer. OK (not received) | ALREADY_DONE (received before) | STALE. (quota_take.lua)"""
        return await self._about_quota("quota_take", project, division, giver, transfer.number, 1)

    async def close_transfer(
        self, project: str, division: str, to: str, transfer: Transfer, back: bool
    ) -> ScriptResult:
        """Delete a transfer; `back`: return its amounts to the share. OK | ALREADY_DONE | STALE. (quota_given.lua)"""
        return await self._about_quota("quota_given", project, division, to, transfer.number, int(back))

    async def _about_quota(self, script: str, project: str, *arguments: str | int) -> ScriptResult:
        return await self._cell.answer(script, (self._cell.keys.quota(project),), arguments)
