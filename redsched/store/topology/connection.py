"""Connections to one server: how they are made, with the reason for each timeout and retry; and their errors.

There are two kinds of pool, for two kinds of call:

- the writer's connections send scripts and never resend anything by themselves: redis-py would otherwise resend a call
  whose reply was lost up to ten times. `script_client` decides on resending, as it knows that scripts are idempotent;
- the reader's connections only read (and add a cell to the list of cells, which may be done twice), so their few
  retries are harmless. A bounded pool that waits serves any number of callers.

Both use RESP2: HGETALL, of which a snapshot consists, is read about 30 % faster than with RESP3.

A pool leads to a fixed address, or to an endpoint (endpoint.py) that is resolved at each connect.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import redis.asyncio as redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
    InvalidResponse,
    NoPermissionError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TimeoutError as RedisTimeoutError,
)

from redsched.errors import RedschedError, SchemaMismatch, StoreFull, StoreUnavailable
from redsched.model.records.problems import UnavailableFacts
from redsched.model.units import mib
from redsched.settings import Settings
from redsched.store.topology.endpoint import Endpoint, EndpointConnection, EndpointPool, EndpointTlsConnection
from redsched.store.topology.url import Address, StoreUrl, parse, without_password

LOST = (RedisConnectionError, RedisTimeoutError, OSError, InvalidResponse)
"""Errors of a broken connection or an unreadable reply: the call may have been executed."""

UNREADABLE = "Protocol error"
"""The server's error for input that it cannot parse. It closes the connection, so the connection is lost as well."""

WRITER, READER = "redsched-writer", "redsched-reader"
"""The names of the connections in CLIENT LIST."""

_WRITERS = 2
"""Connections to each server: one for calls that share a pipeline, one for calls that wait for replicas or a disk."""

_OUT_OF_MEMORY = "OOM"

_NOT_NOW = (
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
"""The first words of errors of calls that were not run, but may succeed later."""

_FORBIDDEN = ("ACL failure in script", "can't run this command", "NOPERM")
"""A missing permission inside a script is reported as an ordinary error, in the server's wording."""


def writer_pool(url: StoreUrl, settings: Settings, at: Address | Endpoint | None = None) -> BlockingConnectionPool:
    """Return a pool of connections that never resend. `at`: where to connect to; by default the URL's address."""
    return _pool(url, settings, at, WRITER, _WRITERS, Retry(NoBackoff(), 0))


def reader_client(url: StoreUrl, settings: Settings, at: Address | Endpoint | None = None) -> redis.Redis:
    """Return a client for reads from one server. `at` as in `writer_pool`."""
    retry = Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.5), 3)
    return redis.Redis.from_pool(_pool(url, settings, at, READER, settings.pool_size, retry))


def login(url: StoreUrl) -> dict[str, Any]:
    """Return the credentials and the TLS options, as redis-py's clients take them."""
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
        "driver_info": None,  # CLIENT SETINFO would need a permission that Redis 7.0 does not know
        "retry": retry,
        "socket_timeout": settings.reply_timeout_s,
        # A caller that waits for a free connection waits for the replies before its own.
        "timeout": settings.reply_timeout_s * 2,
        "max_connections": size,
    }
    return EndpointPool(**options) if "place" in options else BlockingConnectionPool(**options)


def _where(url: StoreUrl, at: Address | Endpoint | None, settings: Settings) -> Mapping[str, Any]:
    if url.path:
        return {"connection_class": UnixDomainSocketConnection, "path": url.path}
    timeout = {"socket_connect_timeout": settings.reply_timeout_s}
    if at is None or isinstance(at, tuple):
        host, port = at or url.nodes[0]
        return {"connection_class": SSLConnection if url.tls else Connection, "host": host, "port": port, **timeout}
    return {"connection_class": EndpointTlsConnection if url.tls else EndpointConnection, "place": at, **timeout}


_IN_PIPELINE = re.compile(r"Command # \d+ \(.*\) of pipeline caused error: \(['\"](.*)['\"],\)", re.DOTALL)
"""How a pipeline of redis-py words the server's error: after the command, with the values that it has."""

_NOBODY = ("No such file or directory", "Connection refused", "Connect call failed")
"""How errors of connecting name that nothing listens at an address."""
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost")
_LEFT_OVER = (
    "; no server is there: if REDSCHED_REDIS_URL is left over from an earlier `redsched up`, unset it, or start "
    "`redsched up` again and use the line that it prints"
)

_ASK_OPERATOR = "ask the operator of redsched, whose log has the reason"


def is_busy(error: BaseException) -> bool:
    """Return whether the server refused a call because a script runs for long: the call was not run."""
    return _server_message(error).startswith("BUSY")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the server refused a call because it is out of memory."""
    return _server_message(error).startswith(_OUT_OF_MEMORY)


def out_of_memory(url: str, memory: tuple[int, int] | None = None) -> StoreFull:
    """Return the error of a call that the server refused because it is out of memory.

    `memory`: what it uses, and its maxmemory, in bytes; None if they are not known.
    """
    is_full = f"is out of memory{full_text(*memory) if memory else ''} and accepts nothing new"
    what_works = "release, shelve and host remove work: end what is not needed"
    return StoreFull(
        f"the store at {without_password(url)} {is_full}; {what_works}, or raise its maxmemory",
        UnavailableFacts(memory_bytes=memory[0], max_memory_bytes=memory[1]) if memory else None,
        public=f"the store {is_full}; {what_works}, or ask the operator of redsched to raise its maxmemory",
    )


def full_text(used: int, limit: int) -> str:
    """Return what a server that is out of memory uses, in parentheses."""
    return f" (it uses {mib(used)}, and its maxmemory is {mib(limit)})"


def to_redsched_error(error: BaseException, url: str) -> RedschedError:
    """Return the error of this project that corresponds to an error of redis-py."""
    text = _server_message(error) or type(error).__name__
    where = without_password(url)
    if isinstance(error, NoPermissionError) or any(words in text for words in _FORBIDDEN):
        return StoreUnavailable(
            f"the store at {where} lacks a permission: {text}; `redsched acl` prints those of each role",
            public=f"the store lacks a permission: {_ASK_OPERATOR}",
        )
    if text.startswith("SCHEMA"):
        # The server appends the name of the script.
        reason = text.removeprefix("SCHEMA ").partition(" script:")[0]
        return SchemaMismatch(
            f"the store at {where} was written by a newer redsched: {reason}; upgrade this process",
            public=f"the store was written by a newer redsched: {reason}; upgrade this process",
        )
    if is_out_of_memory(error):
        return out_of_memory(url)
    if isinstance(error, ResponseError) and not text.startswith(_NOT_NOW) and UNREADABLE not in text:
        return RedschedError(
            f"the store at {where} refused a command: {text}", public=f"the store refused a command: {_ASK_OPERATOR}"
        )
    left_over = _LEFT_OVER if _is_nobody_there(text, url) else ""
    return StoreUnavailable(
        f"the store at {where} cannot be used now: {text}; check that it runs and is the primary{left_over}",
        public=f"the store cannot be used now: try again, or {_ASK_OPERATOR}",
    )


def _is_nobody_there(text: str, url: str) -> bool:
    """Return whether no server listens at an address of this machine, where `redsched up` may have had its store."""
    if not any(words in text for words in _NOBODY):
        return False
    found = parse(url)
    return bool(found.path) or any(host in _THIS_MACHINE for host, _ in found.nodes)


def _server_message(error: BaseException) -> str:
    """Return the error as the server worded it.

    redis-py strips the first word if it has a class for it, and puts the command before it if it was in a pipeline.
    """
    in_pipeline = _IN_PIPELINE.fullmatch(str(error))
    text = in_pipeline[1] if in_pipeline else str(error)
    code = getattr(error, "status_code", None)
    return f"{code} {text}" if code and code != "ERR" and not text.startswith(code) else text


@contextmanager
def reading(url: str) -> Iterator[None]:
    """Convert errors that a read raises inside the context into errors of this project."""
    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:  # RedisClusterException is not a RedisError
        raise to_redsched_error(error, url) from error
