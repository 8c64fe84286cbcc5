"""A lease on a duty that any one scheduler of a cell performs at a time.

A key with an expiry names the holder. Correctness does not depend on there being only one: a duty that two schedulers
hold for a moment is performed twice, and the scripts they call make that harmless.
"""

import secrets

from redsched.store.cell import CellStore


class DutyLease:
    """One scheduler's side of a duty."""

    def __init__(self, cell: CellStore, name: str) -> None:
        self._cell, self._name, self._scheduler = cell, name, secrets.token_hex(8)

    async def is_mine(self, lease_s: float) -> bool:
        """Acquire or renew the duty for `lease_s` from now; return whether this scheduler holds it.

        Raises StoreUnavailable, OutcomeUnknown.
        """
        return await self._cell.take_duty(self._name, self._scheduler, max(1, int(lease_s * 1000)))

    async def give_up(self) -> None:
        """Release the duty, so that another scheduler can take it at once. Raises StoreUnavailable, OutcomeUnknown."""
        await self._cell.take_duty(self._name, self._scheduler, 0)
