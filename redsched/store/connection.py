"""Connections to the store: how they are made, and why each timeout and retry is what it is. Errors become ours here.

Two clients, for two kinds of call:

- the writer sends scripts, and never sends anything twice by itself: redis-py would otherwise re-send a call whose
  reply was lost up to ten times. Sending again is decided in `runner`, which knows that our scripts are idempotent;
- the reader only reads (and enters a cell in the list of cells, which may be done twice), so its few retries are
  harmless. A bounded pool that waits serves any number of callers.

Both speak RESP2: HGETALL, which is what a snapshot is made of, is read about 30 % faster than with RESP3.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis.asyncio as redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from redsched.errors import InvalidRequest, RedschedError, StoreUnavailable, WrongRelease
from redsched.settings import Settings

LOST = (RedisConnectionError, RedisTimeoutError, OSError)
"""What is raised when the connection broke: the call may or may not have been carried out."""

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
    "MISCONF",
)
"""The first word of errors that mean: not run, and a later try may be."""

_FORBIDDEN = ("ACL failure in script", "can't run this command", "NOPERM")
"""A permission that is missing inside a script comes as an ordinary error, worded by the server."""


def check_url(url: str) -> str:
    """Return the URL if the store can be reached by such a one, else raise InvalidRequest."""
    try:
        parse_url(url)
    except ValueError:  # its words are left out, and more than the password: a "/" in one makes it look like a port
        hidden = re.sub("//.*@", "//***@", url)
        raise InvalidRequest(
            f"store URL {hidden!r} is not understood: use redis://host:port/0 (the port a number up to 65535), "
            "rediss://... or unix:///path, and write / # ? @ of a password as %2F %23 %3F %40"
        ) from None
    return url


def without_password(url: str) -> str:
    """The URL as it may be shown and logged."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@")


def writer_pool(url: str, settings: Settings) -> BlockingConnectionPool:
    """One connection: calls in flight together share its pipeline."""
    return _pool(url, settings, "redsched-writer", size=1, retry=Retry(NoBackoff(), 0))


def reader_client(url: str, settings: Settings) -> redis.Redis:
    """A client for reads."""
    retry = Retry(ExponentialWithJitterBackoff(base=0.01, cap=0.5), 3)
    pool = _pool(url, settings, "redsched-reader", size=settings.pool_size, retry=retry)
    return redis.Redis.from_pool(pool)


def _pool(url: str, settings: Settings, name: str, size: int, retry: Retry) -> BlockingConnectionPool:
    options: dict[str, Any] = {
        "protocol": 2,
        "decode_responses": True,
        "client_name": name,
        "retry": retry,
        "socket_timeout": settings.reply_timeout_s,
        # Waiting for a free connection is waiting for the replies before ours.
        "timeout": settings.reply_timeout_s * 2,
        "max_connections": size,
    }
    if urlsplit(url).scheme != "unix":
        options["socket_connect_timeout"] = settings.reply_timeout_s
    return BlockingConnectionPool.from_url(check_url(url), **options)


def as_ours(error: BaseException, url: str) -> RedschedError:
    """The error of this project that says what a Redis error means for the caller."""
    text = _server_words(error) or type(error).__name__
    where = without_password(url)
    if isinstance(error, NoPermissionError) or any(words in text for words in _FORBIDDEN):
        return StoreUnavailable(f"the store at {where} lacks a permission: {text}; see docs/operate.md for the ACL")
    if text.startswith("SCHEMA"):
        # What follows are the server's own words about which script it was.
        reason = text.removeprefix("SCHEMA ").partition(" script:")[0]
        return WrongRelease(f"the store at {where} is of a newer redsched: {reason}; upgrade this process")
    if isinstance(error, ResponseError) and not text.startswith(_NOT_NOW):
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
    except (RedisError, OSError) as error:
        raise as_ours(error, url) from error
