"""The primary that Sentinels name."""

import asyncio
from contextlib import suppress
from copy import copy
from typing import Any

from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from redsched import aio
from redsched.settings import Settings
from redsched.store.topology.url import Address, StoreUrl

LONGEST_ASK_S = 1.0
"""How long one Sentinel may take to reply before the next one is queried."""
RECHECK_S = 1.0
"""How often a process that uses the primary asks whether it still is the primary."""


class SentinelEndpoint:
    """The endpoint of a primary that Sentinels name: redis-py's Sentinel client is queried at each connect.

    It is also queried every RECHECK_S while the primary is used. In a failover that an operator requests, the former
    primary stays up, and Sentinel demotes it about 8 s after it has promoted another: what it answers until then is
    lost.

    All pools of a process share one endpoint, so that all follow a failover at once.
    """

    def __init__(self, url: StoreUrl, settings: Settings) -> None:
        patience_s = min(settings.reply_timeout_s, LONGEST_ASK_S)
        options: dict[str, Any] = {
            **url.sentinel_login,
            **({"ssl": True, **url.options} if url.tls else {}),
            "socket_timeout": patience_s,
            "socket_connect_timeout": patience_s,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        self._sentinels = Sentinel(list(url.nodes), sentinel_kwargs=options)  # type: ignore[no-untyped-call]
        self._master = url.master
        self._nodes = ", ".join(f"{host}:{port}" for host, port in url.nodes)
        self.address: Address | None = None
        self._checked_s = 0.0
        self._recheck: asyncio.Task[None] | None = None

    async def find(self) -> Address:
        """Query the Sentinels in turn. Raises MasterNotFoundError, a ConnectionError, if none names the primary.

        Each call iterates over its own copy of the list: redis-py moves the Sentinel that replied to the head of the
        list, and two calls that do so at once overwrite a third Sentinel, which is then no longer queried or closed.
        """
        asked = copy(self._sentinels)
        asked.sentinels = list(asked.sentinels)
        try:
            host, port = await asked.discover_master(self._master)
        except MasterNotFoundError as error:
            raise MasterNotFoundError(f"no Sentinel of {self._nodes} names a primary for {self._master!r}") from error
        self._sentinels.sentinels = asked.sentinels
        self.address, self._checked_s = (str(host), int(port)), aio.now_s()
        return self.address

    def recheck(self) -> None:
        """Query the Sentinels in the background, unless that was done in the last RECHECK_S."""
        is_due = self.address is not None and aio.now_s() - self._checked_s >= RECHECK_S
        if is_due and (self._recheck is None or self._recheck.done()):
            self._recheck = asyncio.create_task(self._find_again(), name="redsched-sentinels")

    async def _find_again(self) -> None:
        with suppress(RedisError, OSError):  # the next connect reports it, if the primary is not well either
            await self.find()
        self._checked_s = aio.now_s()

    async def invalidate(self, error: BaseException) -> None:
        """Do nothing: the Sentinels are queried at each connect."""

    async def close(self) -> None:
        """Close the connections to the Sentinels."""
        await aio.end(self._recheck)
        await self._sentinels.aclose()
