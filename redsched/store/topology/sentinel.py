"""The primary that Sentinels name."""

import asyncio
import random
from copy import copy
from typing import Any

from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from redsched import aio, logs
from redsched.settings import Settings
from redsched.store.topology.url import Address, StoreUrl

LONGEST_ASK_S = 1.0
"""How long one Sentinel may take to reply before the next one is queried."""
RECHECK_S = 2.0
"""How often a process that uses the primary asks whether it still is the primary, on average."""

log = logs.get_logger(__name__)


class SentinelEndpoint:
    """The endpoint of a primary that Sentinels name: redis-py's Sentinel client is queried at each connect.

    It is also queried about every RECHECK_S while the primary is used. In a failover that an operator requests, the
    former primary stays up, and Sentinel demotes it about 8 s after it has promoted another: what it answers until
    then is lost.

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
        # In another order in each process, as they all ask the first one that replies.
        nodes = random.sample(url.nodes, len(url.nodes))
        self._sentinels = Sentinel(nodes, sentinel_kwargs=options)  # type: ignore[no-untyped-call]
        self._master, self._is_tls = url.master, url.tls
        self._nodes = ", ".join(f"{host}:{port}" for host, port in url.nodes)
        self.address: Address | None = None
        self._failovers = 0
        self._recheck_at_s = 0.0
        self._recheck: asyncio.Task[None] | None = None
        self._is_silent = False

    async def find(self) -> Address:
        """Query the Sentinels in turn. Raises MasterNotFoundError, a ConnectionError, if none names the primary."""
        self.address, self._failovers = await self._ask()
        return self.address

    async def _ask(self) -> tuple[Address, int]:
        """Return the primary's address, and its configuration epoch, which rises with each failover.

        Each call iterates over its own copy of the list: redis-py moves the Sentinel that replied to the head of the
        list, and two calls that do so at once overwrite a third Sentinel, which is then no longer queried or closed.
        """
        asked = copy(self._sentinels)
        asked.sentinels = list(asked.sentinels)
        try:
            await asked.discover_master(self._master)
            # The Sentinel that has replied is now the first.
            state: Any = await asked.sentinels[0].sentinel_master(self._master)
        except MasterNotFoundError as error:
            reason = await self._refusal(asked.sentinels[0])
            raise MasterNotFoundError(
                f"no Sentinel of {self._nodes} names a primary for {self._master!r}{reason}"
            ) from error
        self._sentinels.sentinels = asked.sentinels
        self._recheck_at_s = aio.now_s() + RECHECK_S * random.uniform(0.5, 1.5)
        return (str(state["ip"]), int(state["port"])), int(state["config-epoch"])

    async def _refusal(self, sentinel: Any) -> str:
        """Return why a Sentinel refuses TLS, for the end of an error: redis-py keeps that to itself."""
        if not self._is_tls:
            return ""
        try:
            await sentinel.ping()
        except (RedisError, OSError) as error:
            return f": {error}"
        return ""

    def recheck(self) -> None:
        """Query the Sentinels in the background, about every RECHECK_S."""
        is_due = self.address is not None and aio.now_s() >= self._recheck_at_s
        if is_due and (self._recheck is None or self._recheck.done()):
            self._recheck = aio.detached(self._find_again(), name="redsched-sentinels")

    async def _find_again(self) -> None:
        try:
            address, failovers = await self._ask()
        except (RedisError, OSError) as error:
            self._recheck_at_s = aio.now_s() + RECHECK_S
            if not self._is_silent:  # the primary may be well, so this is no failure yet
                log.warning("no Sentinel replies", problem=str(error))
            self._is_silent = True
            return
        self._is_silent = False
        # A Sentinel that was cut off may not know of the last failovers. Do not return to a former primary.
        if failovers >= self._failovers:
            self.address, self._failovers = address, failovers

    async def invalidate(self, error: BaseException) -> None:
        """Do nothing: the Sentinels are queried at each connect."""

    async def close(self) -> None:
        """Close the connections to the Sentinels."""
        await aio.end(self._recheck)
        await self._sentinels.aclose()
