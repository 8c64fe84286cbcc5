"""Connections to one server: how they are made, and why each timeout and retry is what it is. Errors become ours here.

Two kinds of pool, for two kinds of call:

- the writer's connections send scripts, and never send anything twice by themselves: redis-py would otherwise re-send a
  call whose reply was lost up to ten times. Sending again is decided in `runner`, which knows that our scripts are
  idempotent;
- the reader's only read (and enter a cell in the list of cells, which may be done twice), so their few retries are
  harmless. A bounded pool that waits serves any number of callers.

Both speak RESP2: HGETALL, which is what a snapshot is made of, is read about 30 % faster than with RESP3.

Which server a pool leads to is said by its address, or by an endpoint (endpoint.py) that is asked at each connect.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import redis.asyncio as redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, NoPermissionError, RedisClusterException, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from redsched.errors import RedschedError, SchemaMismatch, StoreUnavailable
from redsched.settings import Settings
from redsched.store.topology.endpoint import Endpoint, PlacedConnection, PlacedPool, PlacedTlsConnection
from redsched.store.topology.url import Address, StoreUrl, without_password

LOST = (RedisConnectionError, RedisTimeoutError, OSError, InvalidResponse)
"""What is raised when the connection broke, or what came over it cannot be read: the call may have been carried out."""

UNREADABLE = "Protocol error"
"""The server's word that what it got cannot be read. It closes the connection, so that is broken as well."""

WRITER, READER = "redsched-writer", "redsched-reader"
"""What the connections are called in CLIENT LIST."""

_WRITERS = 2
"""Of one server: calls in flight together share a pipeline, and those that wait for replicas or a disk another."""

_NOT_NOW = (
    "OOM",
    "READONLY",
    "MASTERDOWN",
    "NOREPLICAS",
    "BUSY",
    "LOADING",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "ASK",
    "MOVED",
    "MISCONF",
)
"""The first word of errors that mean: not run, and a later try may be."""

_FORBIDDEN = ("ACL failure in script", "can't run this command", "NOPERM")
"""A permission that is missing inside a script comes as an ordinary error, worded by the server."""


def writer_pool(url: StoreUrl, settings: Settings, at: Address | Endpoint | None = None) -> BlockingConnectionPool:
    """Connections that send nothing twice. `at`: where to; without it, where the URL says."""
    return _pool(url, settings, at, WRITER, _WRITERS, Retry(NoBackoff(), 0))


def reader_client(url: StoreUrl, settings: Settings, at: Address | Endpoint | None = None) -> redis.Redis:
    """A client for reads of one server. `at` as in `writer_pool`."""
    retry = Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.5), 3)
    return redis.Redis.from_pool(_pool(url, settings, at, READER, settings.pool_size, retry))


def login(url: StoreUrl) -> dict[str, Any]:
    """Who logs in, and the options for TLS, as redis-py's clients take them."""
    return {"username": url.username, "password": url.password, **url.options}


def _pool(
    url: StoreUrl, settings: Settings, at: Address | Endpoint | None, name: str, size: int, retry: Retry
) -> BlockingConnectionPool:
    options: dict[str, Any] = {
        **login(url),
        **_where(url, at, settings),
        "db": url.db,
        "protocol": 2,
        "decode_responses": True,
        "client_name": name,
        "retry": retry,
        "socket_timeout": settings.reply_timeout_s,
        # Waiting for a free connection is waiting for the replies before ours.
        "timeout": settings.reply_timeout_s * 2,
        "max_connections": size,
    }
    return PlacedPool(**options) if "place" in options else BlockingConnectionPool(**options)


def _where(url: StoreUrl, at: Address | Endpoint | None, settings: Settings) -> Mapping[str, Any]:
    if url.path:
        return {"connection_class": UnixDomainSocketConnection, "path": url.path}
    timeout = {"socket_connect_timeout": settings.reply_timeout_s}
    if at is None or isinstance(at, tuple):
        host, port = at or url.nodes[0]
        return {"connection_class": SSLConnection if url.tls else Connection, "host": host, "port": port, **timeout}
    return {"connection_class": PlacedTlsConnection if url.tls else PlacedConnection, "place": at, **timeout}


def as_ours(error: BaseException, url: str) -> RedschedError:
    """The error of this project that says what a Redis error means for the caller."""
    text = _server_words(error) or type(error).__name__
    where = without_password(url)
    if isinstance(error, NoPermissionError) or any(words in text for words in _FORBIDDEN):
        return StoreUnavailable(f"the store at {where} lacks a permission: {text}; see docs/operate.md for the ACL")
    if text.startswith("SCHEMA"):
        # What follows are the server's own words about which script it was.
        reason = text.removeprefix("SCHEMA ").partition(" script:")[0]
        return SchemaMismatch(f"the store at {where} is of a newer redsched: {reason}; upgrade this process")
    if isinstance(error, ResponseError) and not text.startswith(_NOT_NOW) and UNREADABLE not in text:
        return RedschedError(f"the store at {where} refused a command: {text}")
    return StoreUnavailable(f"the store at {where} cannot be used now: {text}; check that it runs and is the primary")


def _server_words(error: BaseException) -> str:
    """The error as the server worded it: redis-py takes the first word off where it has a class for it."""
    code = getattr(error, "status_code", None)
    return f"{code} {error}" if code and code != "ERR" else str(error)


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Turn what a read raises into errors of this project."""
    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:  # the second is no RedisError
        raise as_ours(error, url) from error
