"""One call with its retries. It does no input or output: it yields what to do, and is sent what came of it.

    Send    send this request; its reply or httpx's error is sent back
    Pause   wait for so many seconds

A call that may be repeated is retried after a lost reply and after every temporary failure. Any other is retried only
if no connection was made, because then the API has not seen it.
"""

import json
import random
import ssl
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

import httpx

from redsched import tracing
from redsched.errors import (
    InvalidRequest,
    OutcomeUnknown,
    RedschedError,
    StoreUnavailable,
    Unauthenticated,
    Unavailable,
)
from redsched.model.records.problems import problem_of
from redsched.rest import TokenFile, reason_of

T = TypeVar("T")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""The pause before the first retry, and the longest one. It doubles with each, and varies by half."""
REPEATABLE = frozenset(("GET", "PUT", "DELETE"))
"""Methods that may always be repeated."""
BUSY = frozenset((408, 429, 503))
"""The status of replies without a known problem that say that the request was not handled."""
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout)

Query = Sequence[tuple[str, str]]
Read: TypeAlias = Callable[[httpx.Response], T]
"""How a successful reply is read. Raises ValueError if it cannot be."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A call: its request, and how its reply is read. Names in `path` must be quoted.

    `is_repeatable`: a POST that may be sent twice. `waits_s`: how long the API may take beyond the client's timeout.
    """

    method: str
    path: str
    read: Read[T]
    query: Query = ()
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False
    waits_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Send:
    """A request to send. `timeout_s`: how long its reply may take."""

    method: str
    path: str
    query: Query
    content: bytes | None
    headers: Mapping[str, str]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """A time to wait before the next attempt."""

    seconds: float


Outcome: TypeAlias = httpx.Response | httpx.HTTPError | None
"""What came of an attempt; None after a pause."""
Exchange: TypeAlias = Generator[Send | Pause, Outcome, T]


@dataclass(frozen=True, slots=True)
class Api:
    """The API as calls see it: its URL, the token for it, and how patient its caller is.

    `retry_s`: how long after its begin a call is retried, besides the time that it may take anyway.
    """

    url: str
    token: Callable[[], str]
    token_file: TokenFile | None
    timeout_s: float
    retry_s: float
    clock: Callable[[], float] = time.monotonic


def exchange(call: Call[T], api: Api) -> Exchange[T]:
    """Return the reply to a call. Raises the errors of `redsched.errors`.

    The last failure is raised if a retry would begin later than `retry_s`. Of an Unavailable call, `facts` has the
    `idempotency_key` that was sent, with which the caller may repeat it.
    """
    until_s, refused, number = api.clock() + api.retry_s + call.waits_s, "", 0
    while True:
        token = api.token()
        outcome = yield _attempt(call, api, token)
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            return _content(call, api, outcome)
        error = _error(call, api, outcome)
        if isinstance(error, Unauthenticated) and not token:
            raise Unauthenticated(
                f"the API at {api.url} wants a token, and this client has none: give it a token_file, or a token"
            )
        if isinstance(error, Unauthenticated) and api.token_file and token != refused:
            # It may have been replaced just now. The API did nothing for this one.
            api.token_file.look_again()
            refused = token
            if api.token() != token:
                continue
        pause_s = max(_pause_s(number), _retry_after_s(outcome))
        if not _may_retry(call, error, outcome) or api.clock() + pause_s > until_s:
            raise error
        yield Pause(pause_s)
        number += 1


def check_open(client: httpx.Client | httpx.AsyncClient) -> None:
    """Raise InvalidRequest if a client is closed; httpx raises RuntimeError."""
    if client.is_closed:
        raise InvalidRequest("this client is closed: open another one")


def authorization(token: str) -> dict[str, str]:
    """Return the header with a token; none for ''."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def _attempt(call: Call[Any], api: Api, token: str) -> Send:
    headers = {**call.headers, **authorization(token)}
    if traceparent := tracing.traceparent():
        headers["traceparent"] = traceparent
    content = None
    if call.body is not None:
        headers["Content-Type"] = "application/json"
        content = json.dumps(call.body).encode()
    return Send(call.method, call.path, call.query, content, headers, api.timeout_s + call.waits_s)


def _content(call: Call[T], api: Api, reply: httpx.Response) -> T:
    try:
        return call.read(reply)
    except ValueError as error:
        raise RedschedError(
            f"the reply of {api.url} to {call.method} {call.path} is not one that this release reads: check that it is "
            "redsched, and of the same release as this client"
        ) from error


def _may_retry(call: Call[Any], error: RedschedError, outcome: Outcome) -> bool:
    if isinstance(outcome, _NOT_SENT):
        return not _is_unverified(outcome)
    return isinstance(error, Unavailable) and (call.is_repeatable or call.method in REPEATABLE)


def _is_unverified(failure: BaseException | None) -> bool:
    """Return whether a connection failed because the API's certificate is not trusted, which no retry changes."""
    while failure is not None and not isinstance(failure, ssl.SSLCertVerificationError):
        failure = failure.__cause__ or failure.__context__
    return failure is not None


def _pause_s(number: int) -> float:
    return float(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(number, 16))) * random.uniform(0.5, 1.5)


def _retry_after_s(outcome: Outcome) -> float:
    """Return the seconds that a reply asks to wait; 0 if it does not, or names a date."""
    given = outcome.headers.get("Retry-After", "") if isinstance(outcome, httpx.Response) else ""
    return float(given) if given.isdecimal() else 0.0


def _error(call: Call[Any], api: Api, outcome: Outcome) -> RedschedError:
    error = (
        error_of(outcome, api.url)
        if isinstance(outcome, httpx.Response)
        else lost(call.method, call.path, api.url, outcome)
    )
    key = call.headers.get("Idempotency-Key")
    if key and isinstance(error, Unavailable):
        error.facts = replace(error.facts, idempotency_key=key)
    return error


def lost(method: str, path: str, url: str, failure: httpx.HTTPError | None) -> RedschedError:
    """Return the error of a request without a reply."""
    reason = reason_of(failure) if failure else "no reply"
    if isinstance(failure, _NOT_SENT):
        error: RedschedError = StoreUnavailable(
            f"the API at {url} cannot be reached: {reason}; check the URL, and that it runs"
        )
    else:
        error = OutcomeUnknown(f"the API at {url} did not reply to {method} {path}: {reason}")
    error.__cause__ = failure
    return error


def error_of(reply: httpx.Response, url: str) -> RedschedError:
    """Return the error that a reply describes."""
    problem, status = problem_of(reply.content), reply.status_code
    answers = f"the API at {url} answers {status} {reply.reason_phrase}"
    if problem is None:
        if status in BUSY:
            return StoreUnavailable(answers)
        if status >= 500:
            return OutcomeUnknown(f"{answers}: whether it was done is not known")  # a proxy that got no reply
        return InvalidRequest(f"{answers}, which is no reply of redsched: check the URL")
    if problem.kind:
        return problem.error(problem.kind)
    if status in BUSY:
        return problem.error(StoreUnavailable, f"{answers}: {problem.detail}")
    if status >= 500:
        return problem.error(RedschedError, f"{answers}: {problem.detail}")
    return problem.error(InvalidRequest)
