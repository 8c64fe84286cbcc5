"""The base of all commands of a cell: its keys, running its scripts, and reading from it."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

from redis.exceptions import NoPermissionError

from redsched.origin import Origin
from redsched.store.client.reads import read_hashes
from redsched.store.client.script_client import ScriptClient
from redsched.store.codec.keys import CELLS, Keys
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.codec.wire import Reply
from redsched.store.commands.known_cells import KnownCells
from redsched.store.topology.connection import reading

CHUNK = 500
"""The most items in one script or pipeline, so that none blocks the server for long."""
CLAIMS_AT_ONCE = 100
"""The most hashes in one of several pipelines: each takes the event loop 30 us, without a yield in between."""
MAX_TRIES = 20
"""How often a call is rebuilt because its inputs have changed. Each time, another call has made progress."""

T = TypeVar("T")


class CellClient:
    """Access to one cell of one store.

    `scripts` runs scripts, `reader` reads from the server that now has the cell, and `outside` reads single keys that
    belong to no cell. Both readers are clients of redis-py, typed as Any, because its annotations are unions over bytes
    and str, sync and async, that no caller can use. `cells`: those of the store; None: this one alone.
    """

    def __init__(
        self, name: str, url: str, scripts: ScriptClient, reader: Any, outside: Any, cells: KnownCells | None = None
    ) -> None:
        self.name = name
        self.keys = Keys(name)
        self.scripts = scripts
        self.reader = reader
        self.outside = outside
        self._cells = cells
        self.url = url

    async def others(self) -> list[str]:
        """Return the names of the other cells of the store."""
        if self._cells is None:
            return []
        if self._cells.are_old:
            listed = set[str]()
            with self.reading(), suppress(NoPermissionError):
                listed = await self.outside.smembers(CELLS)
            self._cells.note(listed)
        return sorted(self._cells.names - {self.name})

    @property
    def is_read_only(self) -> bool:
        """Whether the connection was opened for reading only."""
        return self.scripts.is_read_only

    async def run(
        self,
        script: str,
        keys: Sequence[str] = (),
        arguments: Sequence[str | int] = (),
        durable: bool = False,
        origins: Sequence[Origin] = (),
    ) -> Reply:
        """Run a script on this cell, with the cell's head keys before `keys`."""
        return await self.scripts.run(script, (*self.keys.head, *keys), arguments, durable, origins)

    async def answer(self, script: str, keys: Sequence[str] = (), arguments: Sequence[str | int] = ()) -> ScriptResult:
        """Run a script on this cell and return its reply as a ScriptResult."""
        return as_answer(await self.run(script, keys, arguments))

    async def hashes(self, keys: Sequence[str]) -> list[dict[str, str]]:
        """Return the fields of hashes, read in one pipeline, in the order of their keys; {} for a missing one."""
        with self.reading():
            return await read_hashes(self.reader, keys)

    def reading(self) -> AbstractContextManager[None]:
        """Convert redis-py's errors raised inside into errors of this project."""
        return reading(self.url)


def as_answer(reply: Reply) -> ScriptResult:
    """Return the head that every reply begins with, and the rest as text."""
    return ScriptResult(Outcome(reply[0]), reply[1], int(reply[2]), tuple(str(fact) for fact in reply[3:]))


def chunks(items: Sequence[T], most: int = CHUNK) -> Iterator[Sequence[T]]:
    """Return slices of at most `most` items: at least one slice, so that every call has a reply."""
    return (items[first : first + most] for first in range(0, max(1, len(items)), most))
