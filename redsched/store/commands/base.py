"""What the typed calls share: the cell they are for, and turning a script's flat reply into an ScriptResult."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from redsched.store.client.script_client import ScriptClient
from redsched.store.codec.keys import Keys
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult
from redsched.store.codec.wire import Reply

CHUNK = 500
"""Things in one script or pipeline: none may hold the server for long."""
CLAIMS_AT_ONCE = 100
"""Hashes in one pipeline of many: redis-py takes 30 us of the event loop's time to read one, and reads them in a go."""
MAX_TRIES = 20
"""How often a call is built anew when what it was built from changed meanwhile: progress is somebody's each time."""

T = TypeVar("T")


class CellBase:
    """One cell of one store."""

    def __init__(self, name: str, url: str, runner: ScriptClient, reader: Any, outside: Any) -> None:
        self.name = name
        self.keys = Keys(name)
        self._url = url
        self._runner = runner
        # redis-py's client: its annotations are unions over bytes and str, sync and async, that no caller can use.
        self._reader = reader
        """Reads what lies in the cell, wherever that is now."""
        self._outside = outside
        """Reads single keys that lie in no cell."""

    async def _run(
        self, script: str, keys: Sequence[str] = (), arguments: Sequence[str | int] = (), durable: bool = False
    ) -> Reply:
        return await self._runner.run(script, (*self.keys.head, *keys), arguments, durable)

    async def _answer(self, script: str, keys: Sequence[str] = (), arguments: Sequence[str | int] = ()) -> ScriptResult:
        return as_answer(await self._run(script, keys, arguments))

    def _thing_keys(self, names: Iterable[str]) -> list[str]:
        """Return the keys of things named as their keys end: `server-group:web`, `pool:licences`, `gang:a`, `host:h1`.

        A host comes with its set of claims and its inbox.
        """
        found: list[str] = []
        for name in names:
            kind, _, own = name.partition(":")
            found += self._host_keys(own) if kind == "host" else (self.keys.thing(kind, own),)
        return found

    def _host_keys(self, host: str) -> tuple[str, str, str]:
        return self.keys.host(host), self.keys.claims(host), self.keys.inbox(host)


def as_answer(reply: Reply) -> ScriptResult:
    """The head that every reply begins with, and the rest as text."""
    return ScriptResult(Outcome(reply[0]), reply[1], int(reply[2]), tuple(str(fact) for fact in reply[3:]))


def chunks(items: Sequence[T], most: int = CHUNK) -> Iterator[Sequence[T]]:
    """At least one, so that every call has an answer."""
    return (items[first : first + most] for first in range(0, max(1, len(items)), most))
