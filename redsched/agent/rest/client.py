"""Requests to the API with the agent's token. Problems become the errors that the store's calls raise."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from redsched import aio, errors
from redsched.agent.rest.endpoint import TokenFile, checked_api, tls_of
from redsched.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    OutcomeUnknown,
    RedschedError,
    StoreUnavailable,
    Unauthenticated,
    Unavailable,
)
from redsched.settings import Settings

if TYPE_CHECKING:
    import httpx

AT_ONCE = 32
"""Requests at a time, besides those that wait for notifications."""
KEEP_S = 4.0
"""How long an idle connection is kept: less than the API keeps it, or requests would meet its end."""

CONNECTED_S = 0.01
"""How often an abandoned request is looked at while it connects."""

_ERRORS: Mapping[str, type[RedschedError]] = {
    one.problem: one
    for one in vars(errors).values()
    if isinstance(one, type) and issubclass(one, RedschedError) and one not in (RedschedError, Unavailable)
}
_REFUSED = (Unauthenticated, Forbidden, NotFound)


class ApiClient:
    """A connection to the API, opened by `ApiClient.connect`."""

    def __init__(self, client: "httpx.AsyncClient", url: str, token: TokenFile, reply_timeout_s: float) -> None:
        self._client = client
        self.url = url
        self._token = token
        self._reply_timeout_s = reply_timeout_s
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @classmethod
    @asynccontextmanager
    async def connect(cls, settings: Settings) -> AsyncIterator["ApiClient"]:
        """Open a connection. Raises InvalidRequest for unusable settings, or without httpx."""
        try:
            import httpx
        except ModuleNotFoundError:
            raise InvalidRequest("--api needs httpx, which is not installed: pip install 'redsched[rest]'") from None
        url, token = checked_api(settings), TokenFile(settings.token_file)
        client = httpx.AsyncClient(
            base_url=url,
            verify=tls_of(settings),
            headers={"User-Agent": "redsched-agent"},
            # The token goes to this URL and nowhere else: through no proxy of the environment, and to no redirect.
            trust_env=False,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=AT_ONCE, keepalive_expiry=KEEP_S),
        )
        async with client:
            yield cls(client, url, token, settings.reply_timeout_s)

    async def first(self) -> Mapping[str, Any]:
        """Return the fleet's description. Raises Unauthenticated, Forbidden and NotFound, as well as Unavailable."""
        return await self._call("GET", "/v1/agent")

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Sequence[tuple[str, str]] = (),
        timeout_s: float = 0.0,
    ) -> Mapping[str, Any]:
        """Return the reply to a request; `timeout_s` is how long the API may wait before it replies.

        Raises OutcomeUnknown if it was sent and no reply came, StoreUnavailable, and what the reply says. A refused
        token is an outage too: the agent goes on once there is another one.
        """
        try:
            if timeout_s:
                return await self._call(method, path, body, query, timeout_s)
            async with self._at_once:
                return await self._call(method, path, body, query)
        except _REFUSED as error:
            self._token.look_again()
            raise StoreUnavailable(f"the API at {self.url} refuses this agent: {error.detail}") from error

    async def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Sequence[tuple[str, str]] = (),
        timeout_s: float = 0.0,
    ) -> Mapping[str, Any]:
        import httpx

        timeout = httpx.Timeout(self._reply_timeout_s, read=self._reply_timeout_s + timeout_s, pool=None)
        token = self._token.token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            request = self._client.build_request(
                method, path, json=body, params=list(query), headers=headers, timeout=timeout
            )
            reply = await self._send(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise StoreUnavailable(f"the API at {self.url} cannot be reached: {_about(error)}") from error
        except httpx.HTTPError as error:
            raise OutcomeUnknown(f"the API at {self.url} did not reply to {method} {path}: {_about(error)}") from error
        if reply.is_success:
            return self._content(reply)
        raise self._error(reply)

    async def _send(self, request: "httpx.Request") -> "httpx.Response":
        """Send a request. If the caller is cancelled while it connects, end it only once it has connected.

        uvloop leaves a socket open if connecting is cancelled.
        """
        connecting = set[str]()

        async def trace(event: str, _: object) -> None:
            name, _, step = event.rpartition(".")
            if name.endswith("connect_tcp"):
                connecting.add(name) if step == "started" else connecting.discard(name)

        request.extensions = {**request.extensions, "trace": trace}
        sending = asyncio.ensure_future(self._client.send(request))
        try:
            return await asyncio.shield(sending)
        except asyncio.CancelledError:
            await aio.finish(_end_connected(sending, connecting))
            raise

    def _content(self, reply: "httpx.Response") -> Mapping[str, Any]:
        if not reply.content:
            return {}
        try:
            found = reply.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise StoreUnavailable(f"what answers at {self.url} is not redsched: its reply is no JSON object")
        return found

    def _error(self, reply: "httpx.Response") -> RedschedError:
        """Return the error that a reply describes. One of the API itself, or of a proxy, is a temporary failure."""
        try:
            problem = reply.json()
            kind, detail = str(problem["type"]).rpartition("/")[2], str(problem["detail"])
        except (ValueError, TypeError, KeyError):
            return StoreUnavailable(f"the API at {self.url} answers {reply.status_code} {reply.reason_phrase}")
        if reply.status_code >= 500 and not issubclass(_ERRORS.get(kind, RedschedError), Unavailable):
            return StoreUnavailable(f"the API at {self.url} answers {reply.status_code}: {detail}")
        if kind in _ERRORS:
            return _ERRORS[kind](detail)
        if reply.status_code == 429:
            return StoreUnavailable(f"the API at {self.url} has too much to do: {detail}")
        return InvalidRequest(f"the API at {self.url} answers {reply.status_code}: {detail}")


async def _end_connected(sending: "asyncio.Future[httpx.Response]", connecting: Collection[str]) -> None:
    while connecting and not sending.done():
        await asyncio.wait([sending], timeout=CONNECTED_S)
    sending.cancel()
    await asyncio.wait([sending])
    if not sending.cancelled():
        sending.exception()  # nobody is left to tell


def _about(error: Exception) -> str:
    return str(error) or type(error).__name__
