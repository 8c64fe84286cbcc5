"""Announce that a scheduler runs, with its version and how far its replica is behind, for `redsched status`."""

import asyncio
import os
import secrets
import socket
from contextlib import suppress

from redsched.errors import RedschedError
from redsched.release import release
from redsched.scheduler.background.lease import GIVE_UP_S
from redsched.scheduler.cells import Cell
from redsched.store.commands.status import ANNOUNCED_MS, Announcement

EVERY_S = ANNOUNCED_MS / 1000 / 6
"""How often a scheduler announces itself: several times before the store forgets it."""


class Announcer:
    """Announces this scheduler in one cell."""

    def __init__(self, cell: Cell, fences_after_s: int = 0) -> None:
        """`fences_after_s`: how long a host must be down before this scheduler fences it; 0: it fences none."""
        self._cell, self._id, self._fences_after_s = cell, secrets.token_hex(8), fences_after_s

    async def announce(self) -> None:
        """Announce this scheduler once. Raises StoreUnavailable, OutcomeUnknown."""
        lag_ms = int((self._cell.updater.lag_s() or 0.0) * 1000)
        found = (release(), socket.gethostname(), os.getpid(), lag_ms, self._fences_after_s)
        await self._cell.store.status.announce(Announcement(self._id, 0, *found))

    async def withdraw(self) -> None:
        """Remove the announcement, if the store can be reached; otherwise it is forgotten in time. Raises nothing."""
        with suppress(RedschedError, TimeoutError):
            async with asyncio.timeout(GIVE_UP_S):
                await self._cell.store.status.withdraw(self._id)
