"""Requests to the API with the agent's token. Problems become the errors that the store's calls raise."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from redsched import aio
from redsched.agent.backoff import AgentRefused
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
from redsched.model.record import adapter
from redsched.model.records.problems import problem_of
from redsched.rest import TokenFile, checked_url, options, reason_of, send, tls_context
from redsched.settings import Settings
from redsched.store.agent_calls import CALLS_PATH, AgentApi

if TYPE_CHECKING:
    import httpx

AT_ONCE = 32
"""Requests at a time, besides those that wait for notifications."""

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
    async def connect(cls, settings: Settings, hosts: Sequence[str] = ()) -> AsyncIterator["ApiClient"]:
        """Open a connection for the agent of these hosts. Raises InvalidRequest for unusable settings."""
        import httpx  # most agents use the store

        url = checked_url(settings.api, settings.api_insecure, "--insecure (REDSCHED_API_INSECURE)")
        token = TokenFile(settings.token_file)
        tls = tls_context(settings.api_ca, settings.api_cert, settings.api_key)
        client = httpx.AsyncClient(**options(url, tls, _name(hosts)))
        try:
            yield cls(client, url, token, settings.reply_timeout_s)
        finally:
            await aio.finish(client.aclose())

    async def first(self) -> AgentApi:
        """Return what the API offers. Raises Unauthenticated, Forbidden and NotFound, as well as Unavailable."""
        text = await self._send("GET", "/v1/agent")
        try:
            found: AgentApi = adapter(AgentApi).validate_json(text)
        except ValueError:
            raise StoreUnavailable(f"what answers at {self.url} is not redsched: it has no list of cells") from None
        return found

    async def call(self, name: str, body: bytes, cell: str, timeout_s: float = 0.0, *, is_first: bool = False) -> bytes:
        """Return the reply to a call in JSON; `timeout_s` is how long the API may wait before it replies.

        Raises OutcomeUnknown if it was sent and no reply came, StoreUnavailable, and what the reply says. A refused
        token is an outage too, AgentRefused: the agent goes on once there is another one. Only with `is_first`, the
        refusal of a token that was never accepted here, it is raised as it is.
        """
        try:
            if timeout_s:
                return await self._send("POST", f"{CALLS_PATH}{name}", body, {"cell": cell}, timeout_s)
            async with self._at_once:
                return await self._send("POST", f"{CALLS_PATH}{name}", body, {"cell": cell})
        except _REFUSED as error:
            self._token.look_again()
            if is_first:
                raise
            raise AgentRefused(f"the API at {self.url} refuses this agent: {error.detail}") from error

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
        timeout_s: float = 0.0,
    ) -> bytes:
        import httpx

        timeout = httpx.Timeout(self._reply_timeout_s, read=self._reply_timeout_s + timeout_s, pool=None)
        token = self._token.token()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        try:
            request = self._client.build_request(
                method, path, content=body, params=query, headers=headers, timeout=timeout
            )
            reply = await send(self._client, request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise StoreUnavailable(f"the API at {self.url} cannot be reached: {reason_of(error)}") from error
        except httpx.HTTPError as error:
            raise OutcomeUnknown(
                f"the API at {self.url} did not reply to {method} {path}: {reason_of(error)}"
            ) from error
        if reply.is_success:
            return reply.content
        refused = self._error(reply)
        if isinstance(refused, Unauthenticated) and not token:
            raise Unauthenticated(
                f"the API at {self.url} wants a token, and this agent has none: name the file with its token by "
                "--token-file or REDSCHED_TOKEN_FILE"
            )
        raise refused

    def _error(self, reply: "httpx.Response") -> RedschedError:
        """Return the error that a reply describes. One of the API itself, or of a proxy, is a temporary failure."""
        problem = problem_of(reply.content)
        if problem is None:
            return StoreUnavailable(f"the API at {self.url} answers {reply.status_code} {reply.reason_phrase}")
        known = problem.kind
        if reply.status_code >= 500 and not (known and issubclass(known, Unavailable)):
            return StoreUnavailable(f"the API at {self.url} answers {reply.status_code}: {problem.detail}")
        if known:
            return problem.error(known)
        if reply.status_code == 429:
            return StoreUnavailable(f"the API at {self.url} has too much to do: {problem.detail}")
        return InvalidRequest(f"the API at {self.url} answers {reply.status_code}: {problem.detail}")


def _name(hosts: Sequence[str]) -> str:
    """Return the User-Agent of an agent: if the API refuses it, its log can name the host."""
    if not hosts:
        return "redsched-agent"
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    return f"redsched-agent ({hosts[0]}{more})"
