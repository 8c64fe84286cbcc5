"""Connections to the API: how they are made and verified, and sending that may be cancelled. httpx is imported late."""

import asyncio
import ssl
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from redsched import aio

if TYPE_CHECKING:
    import httpx

KEPT = 32
"""The most idle connections that are kept."""
KEEP_S = 4.0
"""How long an idle connection is kept: less than the API keeps it, or requests would meet its end."""
CONNECTED_S = 0.01
"""How often an abandoned request is looked at while it connects."""


def options(url: str, tls: ssl.SSLContext, name: str) -> dict[str, Any]:
    """Return the arguments of an httpx client of the API at this URL. Raises ModuleNotFoundError without httpx."""
    import httpx

    return {
        "base_url": url,
        "verify": tls,
        "headers": {"User-Agent": name},
        # The token goes to this URL and nowhere else: through no proxy of the environment, and to no redirect.
        "trust_env": False,
        "follow_redirects": False,
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=KEPT, keepalive_expiry=KEEP_S),
    }


async def send(client: "httpx.AsyncClient", request: "httpx.Request") -> "httpx.Response":
    """Send a request. If the caller is cancelled while it connects, end it only once it has connected.

    uvloop leaves a socket open if connecting is cancelled.
    """
    connecting = set[str]()

    async def trace(event: str, _: object) -> None:
        name, _, step = event.rpartition(".")
        if name.endswith("connect_tcp"):
            connecting.add(name) if step == "started" else connecting.discard(name)

    request.extensions = {**request.extensions, "trace": trace}
    sending = asyncio.ensure_future(client.send(request))
    try:
        return await asyncio.shield(sending)
    except asyncio.CancelledError:
        await aio.finish(_end_connected(sending, connecting))
        raise


async def _end_connected(sending: "asyncio.Future[httpx.Response]", connecting: Collection[str]) -> None:
    while connecting and not sending.done():
        await asyncio.wait([sending], timeout=CONNECTED_S)
    sending.cancel()
    await asyncio.wait([sending])
    if not sending.cancelled():
        sending.exception()  # nobody is left to tell


def reason_of(error: Exception) -> str:
    """Return why a connection failed, as text that is never empty."""
    return str(error) or type(error).__name__
