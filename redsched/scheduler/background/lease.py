"""A lease on a duty that any one scheduler of a cell performs at a time.

A key with an expiry names the holder. Correctness does not depend on there being only one: a duty that two schedulers
hold for a moment is performed twice, and the scripts they call make that harmless.
"""

import asyncio
import secrets
from typing import TYPE_CHECKING

from redsched.errors import RedschedError
from redsched.store.cell import CellStore

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

GIVE_UP_S = 1.0
"""How long a closing scheduler tries to release a duty; if that fails, the lease has to expire."""


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

    async def close(self, log: "FilteringBoundLogger", event: str) -> None:
        """Release the duty if the store allows it in time. Otherwise log the event; raises nothing."""
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self.give_up()
        except (RedschedError, TimeoutError) as error:
            log.info(event, cell=self._cell.name, problem=str(error))
