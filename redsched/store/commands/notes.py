"""Decision notes: how the hosts of placements were chosen, written beside their claims after these were made."""

import asyncio
from collections.abc import Sequence

from redsched import aio, logs
from redsched.errors import RedschedError
from redsched.store.client.reads import Command, exchange
from redsched.store.codec.claim_codec import decision_text
from redsched.store.codec.replies import ClaimCall, ClaimReply
from redsched.store.commands.base import CHUNK, CellClient

NOTE_MS = 3600 * 1000
"""How long a note is kept, unless an audit finds that a claim still has its placement."""
LINGER_S = 0.05
"""How long a note waits for others: a round trip for each would take a third of the processor time of a selection."""
MOST_WAITING = 2_000
"""The most notes that wait while the store does not reply. Further ones are left out."""
CLOSE_S = 1.0

_log = logs.get_logger(__name__)


class DecisionNotes:
    """Writes the notes of one cell. Nobody waits for a note: one that cannot be written is lost, its claim is not."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell
        self._waiting: list[Command] = []
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks = aio.BackgroundTasks("redsched-decision-notes")

    def add(self, call: ClaimCall, answer: ClaimReply) -> None:
        """Write soon how the hosts of a call's members were chosen that it has just placed, if the call has that."""
        text = decision_text(call, answer)
        if not text or len(self._waiting) >= MOST_WAITING:
            return
        self._waiting.append(("SET", self._cell.keys.decision(answer.placed[0].token), text, "PX", NOTE_MS))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_S, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._tasks.begin(self.write())

    async def write(self) -> None:
        """Write what waits, and return once that and what is on its way has been written, or is lost."""
        if not (self._waiting or self._writing.locked()):
            return
        async with self._writing:
            while self._waiting:
                some, self._waiting = self._waiting[:CHUNK], self._waiting[CHUNK:]
                await self._send(some)

    async def _send(self, some: Sequence[Command]) -> None:
        try:
            with self._cell.reading():
                await exchange(self._cell.reader, some)
        except RedschedError as error:
            _log.info("decision_notes_lost", cell=self._cell.name, notes=len(some), reason=str(error))

    async def close(self) -> None:
        """Write what waits, for a second at most. Nothing may be added afterwards."""
        if self._timer is not None:
            self._timer.cancel()
            self._begin()
        await self._tasks.stop(CLOSE_S)
