"""What both clients have: the API's URL, the token for it, and the requests to it."""

import math
from typing import Any, Generic, TypeVar

import httpx

from redsched.client.exchange import Api, Call, Send, check_open
from redsched.errors import InvalidRequest
from redsched.operations.operation import Arguments, BaseOperation
from redsched.release import release
from redsched.rest import TokenFile, checked_url, options, tls_context

T = TypeVar("T")
Transport = TypeVar("Transport")


def call_of(operation: BaseOperation[Any, T], arguments: Arguments) -> Call[T]:
    """Return the call of an operation. Raises InvalidRequest."""
    sent, route = operation.sent(arguments), operation.route
    return Call(
        route.method,
        operation.path(sent.names),
        operation.read,
        query=sent.query,
        body=sent.body,
        headers=sent.headers,
        is_repeatable=route.is_repeatable,
        waits_s=sent.waits_s,
    )


class BaseClient(Generic[Transport]):
    """What both clients have: the API's URL, the token for it, and how it is verified.

    The token is given as `token`, or in a private file, `token_file`, which is read again when it changes. `ca`, `cert`
    and `key` are PEM files: the authorities of the API's certificate (default: the system's), and a certificate of
    one's own. `insecure` allows plain http to another machine. A reply may take `timeout_s`, beyond what a request
    waits for; a call is retried for `retry_s`. `transport` replaces httpx's own. Raises InvalidRequest.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        token_file: str = "",
        ca: str = "",
        cert: str = "",
        key: str = "",
        insecure: bool = False,
        timeout_s: float = 10.0,
        retry_s: float = 30.0,
        transport: Transport | None = None,
    ) -> None:
        if token and token_file:
            raise InvalidRequest("token and token_file both set the token: give one of them")
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise InvalidRequest("token is not one line of printable characters: give only the token")
        if not 0 < timeout_s < math.inf:
            raise InvalidRequest(f"timeout_s is {timeout_s}: give seconds above 0")
        if not retry_s >= 0:
            raise InvalidRequest(f"retry_s is {retry_s}: give seconds, or 0 for no retries")
        file = TokenFile(token_file) if token_file else None
        of_file = file.token if file else lambda: token
        self._api = Api(checked_url(url, insecure, "insecure=True"), of_file, file, timeout_s, retry_s)
        self._tls = tls_context(ca, cert, key)
        self._transport = transport
        self._open()

    @property
    def api(self) -> Api:
        """The API as calls see it."""
        return self._api

    def _open(self) -> None:
        """Create the connections."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        found = options(self._api.url, self._tls, f"redsched-client/{release()}")
        return {**found, "transport": self._transport}

    def _request(self, client: httpx.Client | httpx.AsyncClient, one: Send) -> httpx.Request:
        check_open(client)
        return client.build_request(
            one.method,
            one.path,
            content=one.content,
            params=list(one.query),
            headers=one.headers,
            timeout=httpx.Timeout(self._api.timeout_s, read=one.timeout_s, pool=None),
        )
