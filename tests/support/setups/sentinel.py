"""A primary with replicas and three Sentinels, on loopback."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import redis

from redsched.store.embedded.binary import ServerBinary, pick_server
from tests.support.setups.node import HOST, Node, started
from tests.support.waiting import wait_until_sync

MASTER = "redsched"
SENTINELS, QUORUM = 3, 2
DOWN_AFTER_MS, FAILOVER_TIMEOUT_MS = 3000, 3000
"""How long a server may stand still before it is replaced, which a busy machine must not do; and the steps of that."""


class SentinelNode(Node):
    """One Sentinel; it stores its state in its own file."""

    def __init__(self, binary: ServerBinary, primary: Node) -> None:
        super().__init__(binary, {})
        self._file = self.folder / "sentinel.conf"
        watched = f"{MASTER} {HOST} {primary.port} {QUORUM}"
        self._file.write_text(
            f"bind {HOST}\nport {self.port}\ndir {self.folder}\n"
            f"sentinel monitor {watched}\n"
            f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {MASTER} {FAILOVER_TIMEOUT_MS}\n"
            f"sentinel parallel-syncs {MASTER} 5\n"
        )

    def command(self) -> Sequence[str]:
        """Everything is in the file, which Sentinel rewrites."""
        return [str(self._file), "--sentinel"]


class SentinelSetup:
    """`url` is the URL for redsched. Servers and Sentinels are `Node`s: kill, pause, resume, restart them at will."""

    def __init__(self, servers: Sequence[Node], sentinels: Sequence[SentinelNode]) -> None:
        self.servers = servers
        self.sentinels = sentinels
        self.url = f"sentinel://{','.join(f'{HOST}:{one.port}' for one in sentinels)}/{MASTER}"

    def primary(self) -> Node:
        """Return the server that most Sentinels name, of those that reply."""
        ports = [port for one in self.sentinels if (port := _named(one))]
        port = max(set(ports), key=ports.count)
        return next(one for one in self.servers if one.port == port)

    def failovers(self) -> int:
        """Return the epoch of the latest configuration that a Sentinel knows: it rises with each failover."""
        return max(int(_state(one).get("config-epoch", 0)) for one in self.sentinels)

    def replicas(self) -> list[Node]:
        """Return all servers except the primary, including those that do not run."""
        primary = self.primary()
        return [one for one in self.servers if one is not primary]

    def cut_replication(self) -> None:
        """From now on no write reaches a replica: a failover loses them."""
        self.primary().cut_replication()

    def failover(self) -> None:
        """Request a regular failover; `primary` names the new primary some moments later."""
        with self.sentinels[0].asked() as client:
            client.execute_command("SENTINEL", "FAILOVER", MASTER)

    def forget_cut(self) -> None:
        """Undo `cut_replication` on the running servers."""
        for one in self.servers:
            if one.running:
                one.repair_replication()

    def settled(self) -> bool:
        """Return whether all Sentinels name one primary, which reports itself as one and which all others replicate."""
        if len({_named(one) for one in self.sentinels}) != 1 or not self.primary().is_primary():
            return False
        return all(one.linked() for one in self.replicas() if one.running) and self._known()

    def _known(self) -> bool:
        """Return whether every Sentinel knows the others and the replicas: only then can it fail over."""
        return all(
            state.get("num-other-sentinels") == len(self.sentinels) - 1
            and state.get("num-slaves") == len(self.servers) - 1
            for state in map(_state, self.sentinels)
        )


@contextmanager
def sentinel_setup(replicas: int = 2, binary: ServerBinary | None = None, **chosen: str) -> Iterator[SentinelSetup]:
    """Yield a primary, `replicas` of it, and three Sentinels that are ready for a failover.

    `chosen`: options of the servers, with `_` for `-`: `appendonly="yes", appendfsync="always"`.
    """
    binary = binary or pick_server()
    said = {name.replace("_", "-"): value for name, value in chosen.items()}
    with ExitStack() as stack:
        primary = started(stack, Node(binary, said))
        follow = {"replicaof": f"{HOST} {primary.port}"}
        servers = [primary, *(started(stack, Replica(binary, said, follow)) for _ in range(replicas))]
        sentinels = [started(stack, SentinelNode(binary, primary)) for _ in range(SENTINELS)]
        setup = SentinelSetup(servers, sentinels)
        wait_until_sync(setup.settled, timeout=30, what="the Sentinels know each other and the replicas")
        yield setup


class Replica(Node):
    """A server that begins as a replica; after a restart as a primary, which Sentinel corrects."""

    def __init__(self, binary: ServerBinary, chosen: dict[str, str], first: dict[str, str]) -> None:
        super().__init__(binary, chosen)
        self._first = first

    def command(self) -> Sequence[str]:
        """The server that it follows at its first start."""
        first = [word for name, value in self._first.items() for word in (f"--{name}", *value.split())]
        self._first = {}
        return [*super().command(), *first]


def _named(sentinel: Node) -> int | None:
    return int(_state(sentinel).get("port", 0)) or None


def _state(sentinel: Node) -> Any:
    if not sentinel.answers:
        return {}
    try:
        with sentinel.asked() as client:
            return client.sentinel_master(MASTER)
    except (redis.ConnectionError, redis.TimeoutError):
        return {}
