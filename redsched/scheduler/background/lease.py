"""A lease on what one scheduler of a cell is to do at a time, whichever it is.

A small key with an end holds who has it. Nothing rests on there being only one: a duty that two have for a moment is
done twice, and what they call makes sure that no harm comes of that.
"""

import secrets

from redsched.store.cell import CellStore


class DutyLease:
    """One scheduler's side of a duty."""

    def __init__(self, cell: CellStore, name: str) -> None:
        self._cell, self._name, self._scheduler = cell, name, secrets.token_hex(8)

    async def is_mine(self, lease_s: float) -> bool:
        """Whether it is this scheduler's, for `lease_s` from now. Raises StoreUnavailable, OutcomeUnknown."""
        return await self._cell.take_duty(self._name, self._scheduler, max(1, int(lease_s * 1000)))

    async def give_up(self) -> None:
        """Let another one have it at once. Raises StoreUnavailable, OutcomeUnknown."""
        await self._cell.take_duty(self._name, self._scheduler, 0)
