"""A cluster of some shards with replicas, on loopback; hash slots determine the shards of its cells."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import redis
from redis.crc import key_slot

from redsched.store.embedded.binary import ServerBinary, pick_server
from tests.support.setups.node import HOST, Node, free_port, started
from tests.support.waiting import wait_until_sync

SLOTS = 16_384
NODE_TIMEOUT_MS = 3000
"""How long a server may stand still before the others replace it: a busy machine must not do that."""
MOVE_TIMEOUT_S = 20.0
MIGRATE_TIMEOUT_MS = 5000


class ClusterNode(Node):
    """One server of a cluster. Its folder stores its place in the cluster, which outlives a restart."""

    def __init__(self, binary: ServerBinary, chosen: dict[str, str]) -> None:
        cluster = {
            "cluster-enabled": "yes",
            "cluster-node-timeout": str(NODE_TIMEOUT_MS),
            "cluster-port": str(free_port()),
            "cluster-replica-validity-factor": "0",  # a replica whose link was cut must be promoted all the same
            "cluster-allow-replica-migration": "no",
            "cluster-require-full-coverage": "no",
        }
        super().__init__(binary, cluster | chosen)
        self.bus = int(cluster["cluster-port"])
        self.id = ""

    def says_of_cluster(self, field: str) -> Any:
        """Return one field of CLUSTER INFO; None if the server does not reply."""
        try:
            with self.asked() as client:
                return client.execute_command("CLUSTER INFO").get(field)
        except (redis.ConnectionError, redis.TimeoutError):
            return None


class ClusterSetup:
    """`url` is the URL for redsched. `nodes` may be killed, paused, resumed, restarted at will."""

    def __init__(self, nodes: Sequence[ClusterNode]) -> None:
        self.nodes = nodes
        self.url = f"cluster://{','.join(f'{HOST}:{one.port}' for one in nodes)}"

    def primary(self, cell: str) -> ClusterNode:
        """Return the server that has the cell, according to one that runs and sees the cluster as ok."""
        slot = slot_of(cell)
        for node in self.nodes:
            port = _owner(node, slot) if node.answers else None
            owner = next((one for one in self.nodes if one.port == port), None)
            if owner is not None and owner.answers and _owner(owner, slot) == owner.port:
                return owner
        raise AssertionError(f"no server that runs has cell {cell} now")

    def has_primary(self, cell: str) -> bool:
        """Return whether a running server has the cell now: none has between a primary's death and a promotion."""
        try:
            return self.primary(cell).running
        except AssertionError:
            return False

    def led(self) -> bool:
        """Return whether every shard has a primary that replies, according to a server that does."""
        asked = next((one for one in self.nodes if one.answers), None)
        ports = {int(primary[1]) for _, _, primary, *_ in _slots(asked)} if asked else set()
        return bool(ports) and all(one.answers and one.is_primary() for one in self.nodes if one.port in ports)

    def replicas(self, cell: str) -> list[ClusterNode]:
        """Return the replicas of the cell's primary."""
        primary = self.primary(cell)
        return [one for one in self.nodes if one.running and one.says("replication", "master_port") == primary.port]

    def others(self, cell: str) -> list[ClusterNode]:
        """Return primaries of other shards, to which the cell may be moved."""
        primary = self.primary(cell)
        return [one for one in self.nodes if one is not primary and one.running and one.is_primary()]

    def cut_replication(self, cell: str) -> None:
        """From now on no write to the cell's shard reaches a replica: a failover loses them."""
        self.primary(cell).cut_replication()

    def move(self, cell: str, to: ClusterNode | None = None, at_once: bool = True) -> ClusterNode:
        """Move the cell's slot to another shard, and return when it has arrived.

        At once, by CLUSTER MIGRATESLOTS, if the server has that; else, and if not `at_once`, key by key.
        """
        source, target = self.primary(cell), to or self.others(cell)[0]
        slot = slot_of(cell)
        if at_once and self.moves_at_once:
            _say(source, "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id)
        else:
            with self.half_moved(cell, target):
                pass
        wait_until_sync(lambda: self.primary(cell) is target, MOVE_TIMEOUT_S, "the slot has moved")
        return target

    @contextmanager
    def half_moved(self, cell: str, to: ClusterNode | None = None) -> Iterator[None]:
        """Move the cell's slot key by key: within the block half of its keys have moved, and afterwards all of them."""
        source, target, slot = self.primary(cell), to or self.others(cell)[0], slot_of(cell)
        _say(target, "SETSLOT", slot, "IMPORTING", source.id)
        _say(source, "SETSLOT", slot, "MIGRATING", target.id)
        _migrate(source, target, slot, _say(source, "COUNTKEYSINSLOT", slot) // 2)
        try:
            yield
        finally:
            while keys := _say(source, "COUNTKEYSINSLOT", slot):
                _migrate(source, target, slot, keys)
            others = [one for one in self.nodes if one is not target and one.running and one.is_primary()]
            for node in [target, *others]:
                _say(node, "SETSLOT", slot, "NODE", target.id)

    @contextmanager
    def moving(self, cell: str) -> Iterator[None]:
        """Mark the cell's slot as moving key by key, without moving any key; it stays."""
        source, target, slot = self.primary(cell), self.others(cell)[0], slot_of(cell)
        _say(target, "SETSLOT", slot, "IMPORTING", source.id)
        _say(source, "SETSLOT", slot, "MIGRATING", target.id)
        try:
            yield
        finally:
            for node in (source, target):
                _say(node, "SETSLOT", slot, "STABLE")

    @property
    def moves_at_once(self) -> bool:
        """Return whether the server can move a slot as a whole (Valkey 9)."""
        node = self.nodes[0]
        return node.kind == "valkey" and int(node.version.partition(".")[0]) >= 9

    def well(self) -> bool:
        """Return whether all running servers see the cluster as ok and agree on primaries, and replicas have all data.

        A primary that returns considers itself primary until it learns of its successor.
        """
        running = [one for one in self.nodes if one.running]
        views = [_primaries(one) for one in running]
        agreed = all(one.says_of_cluster("cluster_state") == "ok" for one in running) and all(
            views[0] == view and (one.port in view.values() if one.is_primary() else one.linked())
            for one, view in zip(running, views, strict=True)
        )
        followed = Counter(port for one in running if agreed and (port := one.follows()) is not None)
        return agreed and all(one.reaches(followed[one.port]) for one in running if one.port in followed)


@contextmanager
def cluster_setup(
    shards: int = 3, replicas: int = 1, binary: ServerBinary | None = None, **chosen: str
) -> Iterator[ClusterSetup]:
    """Yield a cluster whose shards have `replicas` each. `chosen` as in `sentinel_setup`."""
    binary = binary or pick_server()
    said = {name.replace("_", "-"): value for name, value in chosen.items()}
    with ExitStack() as stack:
        nodes = [started(stack, ClusterNode(binary, said)) for _ in range(shards * (replicas + 1))]
        _form(nodes, shards)
        setup = ClusterSetup(nodes)
        wait_until_sync(setup.well, timeout=30, what="the cluster is well")
        yield setup


def slot_of(cell: str) -> int:
    """Return the hash slot of all keys of a cell."""
    return int(key_slot(cell.encode()))


def cells_of_slots(first: int, last: int) -> Iterator[str]:
    """Yield names for cells whose slots lie between two numbers, inclusive."""
    return (f"c{number}" for number in range(1, SLOTS) if first <= slot_of(f"c{number}") <= last)


def cells_apart(shards: int = 3) -> list[str]:
    """Return a name of a cell for each shard of a set-up in which no cell has moved."""
    ranges = _ranges(shards)
    return [next(cells_of_slots(first, last)) for first, last in ranges]


def _ranges(shards: int) -> list[tuple[int, int]]:
    edges = [SLOTS * number // shards for number in range(shards + 1)]
    return [(first, last - 1) for first, last in itertools.pairwise(edges)]


def _form(nodes: Sequence[ClusterNode], shards: int) -> None:
    """Assign slots to the first `shards` nodes, introduce all to the first, and make the rest replicas in turn."""
    for number, node in enumerate(nodes):
        node.id = _say(node, "MYID")
        _say(node, "SET-CONFIG-EPOCH", number + 1)
    for node, (first, last) in zip(nodes, _ranges(shards), strict=False):
        _say(node, "ADDSLOTSRANGE", first, last)
    for node in nodes[1:]:
        _say(node, "MEET", HOST, nodes[0].port, nodes[0].bus)
    wait_until_sync(lambda: all(_knows(one, nodes) for one in nodes), timeout=30, what="the nodes know each other")
    for number, node in enumerate(nodes[shards:]):
        _say(node, "REPLICATE", nodes[number % shards].id)


def _knows(node: ClusterNode, nodes: Sequence[ClusterNode]) -> bool:
    with node.asked() as client:
        known = client.execute_command("CLUSTER NODES")
    return all(one.id in str(known) for one in nodes) and "handshake" not in str(known)


def _owner(node: ClusterNode, slot: int) -> int | None:
    return next((int(primary[1]) for first, last, primary, *_ in _slots(node) if first <= slot <= last), None)


def _primaries(node: ClusterNode) -> dict[int, int]:
    """Return the ports of the primaries, according to a server, by the first slot of each range."""
    return {first: int(primary[1]) for first, _, primary, *_ in _slots(node)}


def _slots(node: ClusterNode) -> Any:
    """Return the servers of slots, according to a server; nothing if it does not reply."""
    try:
        with node.asked() as client:
            return client.execute_command("CLUSTER", "SLOTS")
    except (redis.ConnectionError, redis.TimeoutError):
        return ()


def _migrate(source: ClusterNode, target: ClusterNode, slot: int, most: int) -> None:
    with source.asked() as client:
        if keys := client.execute_command("CLUSTER GETKEYSINSLOT", slot, most):
            client.execute_command("MIGRATE", HOST, target.port, "", 0, MIGRATE_TIMEOUT_MS, "KEYS", *keys)


def _say(node: ClusterNode, *words: str | int) -> Any:
    with node.asked() as client:
        return client.execute_command(f"CLUSTER {words[0]}", *words[1:])
