"""A server on a port of loopback, and how its replication link is cut.

Nodes replicate as a user of their own, `replication`. Disabling that user at the primary and ending the replicas'
connections cuts the link permanently, and changes nothing that Sentinel or a cluster would repair: to them it is
a network failure between two servers.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redsched.store.embedded.binary import ServerBinary
from redsched.store.embedded.process import ServerProcess
from redsched.store.embedded.server import options

HOST = "127.0.0.1"
PATIENCE_S = 10.0
"""How long a reply may take on a busy machine. Frozen servers are not asked."""
REACHED_MS = 1000
REPLICATION, PASSWORD = "replication", "link"
N = TypeVar("N", bound="Node")


class Node(ServerProcess):
    """One server. With `appendonly` among the options its data outlives `kill` and `restart`."""

    def __init__(self, binary: ServerBinary, chosen: Mapping[str, str]) -> None:
        super().__init__(binary)
        self.port = free_port()
        self.stands_still = False
        self._options = dict(chosen)

    @property
    def answers(self) -> bool:
        """Return whether a call may succeed."""
        return self.running and not self.stands_still

    def launch(self) -> None:
        """Start it. Raises StoreUnavailable."""
        self.stands_still = False
        super().launch()

    def pause(self) -> None:
        """Freeze it."""
        super().pause()
        self.stands_still = True

    def resume(self) -> None:
        """Resume it."""
        super().resume()
        self.stands_still = False

    @property
    def address(self) -> tuple[str, int]:
        """The address at which it listens."""
        return HOST, self.port

    def command(self) -> Sequence[str]:
        """Return the options of a store that evicts nothing, with links that can be cut."""
        store = {
            "bind": HOST,
            "port": str(self.port),
            "dir": str(self.folder),
            "save": "",
            "maxmemory-policy": "noeviction",
            "repl-diskless-sync-delay": "0",
            "repl-backlog-ttl": "0",
            "masteruser": REPLICATION,
            "masterauth": PASSWORD,
        }
        # An option with several values is one argument of the command line for each.
        user = ["--user", REPLICATION, "on", f">{PASSWORD}", "~*", "&*", "+@all"]
        return [*options(store | self._options), *user]

    def client(self) -> Any:
        """Return a client that fails at once if it gets no reply."""
        return redis.Redis(
            host=HOST,
            port=self.port,
            protocol=2,
            decode_responses=True,
            socket_timeout=PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
        )

    @contextmanager
    def asked(self) -> Iterator[Any]:
        """Yield a client for a few commands."""
        with self.client() as client:
            yield client

    def cut_replication(self) -> None:
        """Send replicas nothing more, until `repair_replication`."""
        with self.asked() as client:
            client.execute_command("ACL", "SETUSER", REPLICATION, "off")
            client.execute_command("CLIENT", "KILL", "TYPE", "replica")

    def repair_replication(self) -> None:
        """Let replicas reconnect."""
        with self.asked() as client:
            client.execute_command("ACL", "SETUSER", REPLICATION, "on")

    def is_primary(self) -> bool:
        """Return whether it reports itself as primary. False if it does not reply."""
        return bool(self.says("replication", "role") == "master")

    def follows(self) -> int | None:
        """Return the port of the primary that it replicates from. None if it does not reply, or is a primary."""
        return self.says("replication", "master_port")  # type: ignore[no-any-return]

    def linked(self) -> bool:
        """Return whether it is a replica whose link is up and that has all data."""
        return bool(self.says("replication", "master_link_status") == "up")

    def reaches(self, replicas: int) -> bool:
        """Return whether this many replicas get the writes from now on.

        Redis 7.0 sends a replica that has just loaded all data nothing before its next message, up to a second later,
        though both report the link as up. If the primary dies before that, the writes since then are lost. Only a
        write shows that: this one changes nothing.
        """
        try:
            with self.asked() as client:
                client.execute_command("FUNCTION", "FLUSH")
                return int(client.wait(replicas, REACHED_MS)) >= replicas
        except (redis.ConnectionError, redis.TimeoutError):
            return False

    def says(self, section: str, field: str) -> Any:
        """Return one field of its INFO; None if it does not reply or has no such field."""
        if not self.answers:
            return None
        try:
            with self.asked() as client:
                return client.info(section).get(field)
        except (redis.ConnectionError, redis.TimeoutError):
            return None


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
        return port


def started(stack: ExitStack, one: N) -> N:
    """Start it, and stop it with the stack."""
    stack.callback(one.stop)
    one.launch()
    return one
