"""A blocking connection to a server's unix socket, for what a test asks between the calls under test.

redis-py takes several times as long for a command as the server, most of it to find a connection and to watch its time.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import hiredis

TIMEOUT_S = 30.0
CHUNK = 1 << 16


class PlainClient:
    """Sends commands in one go, and reads their replies as text. Raises the server's error."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = hiredis.Reader(encoding="utf-8", errors="backslashreplace")

    def ask(self, *commands: Sequence[str]) -> list[Any]:
        """Return the reply to each command, as RESP2 has it: hashes are lists, numbers of sorted sets are text."""
        words: Iterable[tuple[Any, ...]] = map(tuple, commands)
        self._connection.sendall(b"".join(map(hiredis.pack_command, words)))
        replies = [self._reply() for _ in commands]
        for reply in replies:
            if isinstance(reply, hiredis.ReplyError):
                raise reply
        return replies

    def all_keys(self) -> list[str]:
        """Return all keys of the server."""
        found, cursor = list[str](), ""
        while cursor != "0":
            ((cursor, keys),) = self.ask(("SCAN", cursor or "0", "COUNT", "1000"))
            found += keys
        return found

    def _reply(self) -> Any:
        while (reply := self._reader.gets()) is False:
            received = self._connection.recv(CHUNK)
            if not received:
                raise ConnectionError("the server closed the connection")
            self._reader.feed(received)
        return reply


@contextmanager
def plain_client(url: str) -> Iterator[PlainClient]:
    """Yield a connection to a `unix://` URL."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(url.removeprefix("unix://"))
        yield PlainClient(connection)
