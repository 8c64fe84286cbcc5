"""`scripts/store sentinel|cluster|aof`: such a set-up on loopback until Ctrl-C; prints the URL for redsched."""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from redsched.store.embedded.binary import pick_server
from tests.support.setups import cluster_setup, sentinel_setup
from tests.support.setups.node import Node


class Reached(Protocol):
    """A set-up that is reached by a URL."""

    @property
    def url(self) -> str:
        """The URL for redsched."""


class One:
    """A server with AOF."""

    def __init__(self, node: Node) -> None:
        self.url = "redis://{}:{}".format(*node.address)


@contextmanager
def one_with_aof(appendfsync: str) -> Iterator[One]:
    """A server that writes each change to its file before it replies, or each second."""
    with Node(pick_server(), {"appendonly": "yes", "appendfsync": appendfsync}) as node:
        node.launch()
        yield One(node)


def main() -> None:
    """Start it, print its URL, and wait for a signal."""
    given = _parser().parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    with _setup(given) as setup:
        print(f"export REDSCHED_REDIS_URL={setup.url}", flush=True)
        print("Ctrl-C ends all of it, and its data with it.", file=sys.stderr)
        signal.pause()


def _setup(given: argparse.Namespace) -> AbstractContextManager[Reached]:
    if given.kind == "sentinel":
        return sentinel_setup(given.replicas)
    if given.kind == "cluster":
        return cluster_setup(given.shards, given.replicas)
    return one_with_aof(given.appendfsync)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/store", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    sentinel = kinds.add_parser("sentinel", help="a primary, replicas and three Sentinels")
    sentinel.add_argument("--replicas", type=int, default=2)
    cluster = kinds.add_parser("cluster", help="shards with replicas")
    cluster.add_argument("--shards", type=int, default=3)
    cluster.add_argument("--replicas", type=int, default=1, help="of each shard")
    aof = kinds.add_parser("aof", help="one server with an append-only file")
    aof.add_argument("--appendfsync", choices=("always", "everysec"), default="always")
    return parser


if __name__ == "__main__":
    main()
