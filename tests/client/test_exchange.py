"""One call and its retries, played without a network and without time passing: what is retried, and for how long."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from redsched.client.exchange import Api, Call, Pause, Send, exchange
from redsched.errors import (
    ClaimState,
    InvalidRequest,
    NotConfirmed,
    NotFound,
    NoValidHost,
    OutcomeUnknown,
    QuotaExceeded,
    RedschedError,
    Settling,
    StoreUnavailable,
    Unauthenticated,
    Unavailable,
)
from redsched.model import ReasonCount
from redsched.model.records.problems import NoValidHostFacts
from redsched.rest import TokenFile
from tests.auth.parts import write

Reply = httpx.Response | httpx.HTTPError
OK = httpx.Response(200, content=b"done")
LOST = httpx.ReadTimeout("late")
NOT_SENT = httpx.ConnectError("refused")


def problem(status: int, kind: str, headers: dict[str, str] | None = None, **facts: Any) -> httpx.Response:
    body = {"type": f"/problems/{kind}", "title": "t", "detail": "why", "status": status, **facts}
    return httpx.Response(status, json=body, headers=headers)


def _text(reply: httpx.Response) -> str:
    return reply.content.decode()


def post(is_repeatable: bool, **more: Any) -> Call[str]:
    return Call("POST", "/v1/x", _text, body={}, is_repeatable=is_repeatable, **more)


class Played:
    """A caller whose clock advances with its pauses only, and to whom these replies come, the last one for ever."""

    def __init__(self, *replies: Reply, retry_s: float = 30.0, token_file: str = "") -> None:
        self._replies, self.now_s = list(replies), 0.0
        self.sent: list[Send] = []
        self.pauses: list[float] = []
        self.on_sent: Callable[[], object] = int
        file = TokenFile(token_file) if token_file else None
        self._api = Api("http://api", file.token if file else str, file, 10.0, retry_s, lambda: self.now_s)

    def run(self, call: Call[str]) -> str:
        steps, outcome = exchange(call, self._api), None
        try:
            while True:
                step, outcome = steps.send(outcome), None
                if isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    self.now_s += step.seconds
                    continue
                self.sent.append(step)
                self.on_sent()
                outcome = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        except StopIteration as done:
            return str(done.value)


@pytest.mark.parametrize(
    "failure",
    [
        LOST,
        NOT_SENT,
        httpx.RemoteProtocolError("disconnected"),
        problem(503, "store-unavailable"),
        problem(503, "outcome-unknown"),
        problem(503, "too-many-connections"),
        problem(429, "too-many-requests"),
        httpx.Response(502, content=b"<html>"),
        httpx.Response(504, content=b""),
    ],
)
def test_what_may_be_repeated_is_retried_after_every_temporary_failure(failure: Reply) -> None:
    played = Played(failure, failure, OK)
    assert played.run(post(True)) == "done"
    assert (len(played.sent), len(played.pauses)) == (3, 2)
    first, *others = played.sent
    assert others == [first, first]


@pytest.mark.parametrize("failure", [LOST, problem(503, "outcome-unknown"), httpx.Response(502, content=b"")])
def test_what_may_not_be_repeated_is_sent_once(failure: Reply) -> None:
    played = Played(failure, OK)
    with pytest.raises(Unavailable):
        played.run(post(False))
    assert len(played.sent) == 1


def test_what_was_never_sent_is_retried_in_any_case() -> None:
    played = Played(NOT_SENT, NOT_SENT, OK)
    assert played.run(post(False)) == "done"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_some_methods_may_always_be_repeated(method: str) -> None:
    assert Played(LOST, OK).run(Call(method, "/v1/x", _text)) == "done"


def test_retries_end_at_the_deadline_with_the_last_failure() -> None:
    played = Played(LOST, problem(503, "settling"), retry_s=20)
    with pytest.raises(Settling):
        played.run(post(True))
    assert played.now_s <= 20
    assert played.now_s + 5 * 1.5 > 20, "it gave up before the longest pause would have passed the deadline"
    assert len(played.pauses) > 3


def test_the_time_that_a_request_waits_is_allowed_besides() -> None:
    played = Played(LOST, retry_s=20)
    with pytest.raises(OutcomeUnknown):
        played.run(post(True, waits_s=600))
    assert played.now_s > 600
    assert {one.timeout_s for one in played.sent} == {610.0}


def test_pauses_grow_and_are_as_long_as_the_reply_asks() -> None:
    failures: Sequence[Reply] = [LOST, LOST, LOST, problem(503, "settling", {"Retry-After": "7"})]
    played = Played(*failures, OK)
    played.run(post(True))
    assert [0.05 <= pause <= 0.6 for pause in played.pauses[:3]] == [True] * 3
    assert played.pauses[3] == 7


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (problem(404, "not-found"), NotFound),
        (problem(409, "no-valid-host"), NoValidHost),
        (problem(409, "claim-state"), ClaimState),
        (problem(403, "quota-exceeded"), QuotaExceeded),
        (problem(504, "not-confirmed"), NotConfirmed),
        (problem(422, "invalid-request"), InvalidRequest),
        (problem(413, "body-too-large"), InvalidRequest),
        (problem(401, "unauthenticated"), Unauthenticated),
        (problem(500, "internal-error"), RedschedError),
        (httpx.Response(404, content=b"<html>"), InvalidRequest),
        (httpx.Response(307, content=b"", headers={"Location": "http://elsewhere"}), InvalidRequest),
        (httpx.Response(200, content=b"\xff"), RedschedError),
    ],
)
def test_everything_else_is_an_error_at_once(reply: Reply, error: type[RedschedError]) -> None:
    played = Played(reply)
    with pytest.raises(error) as raised:
        played.run(post(True))
    assert type(raised.value) is error
    assert len(played.sent) == 1


def test_an_error_has_the_members_of_the_problem_as_facts() -> None:
    with pytest.raises(NoValidHost) as raised:
        Played(problem(409, "no-valid-host", reasons=[{"reason": "VCPU", "hosts": 3}], request_id="r")).run(post(True))
    assert raised.value.detail == "why"
    assert raised.value.facts == NoValidHostFacts(reasons=(ReasonCount("VCPU", 3),), request_id="r")


@pytest.mark.parametrize("failure", [LOST, NOT_SENT, problem(503, "store-unavailable")])
def test_a_call_given_up_names_the_key_with_which_it_may_be_repeated(failure: Reply) -> None:
    with pytest.raises(Unavailable) as raised:
        Played(failure, retry_s=1).run(post(True, headers={"Idempotency-Key": "k1"}))
    assert raised.value.facts.idempotency_key == "k1"


def test_a_refused_token_is_read_again_and_sent_once_more(tmp_path: Path) -> None:
    path = write(tmp_path / "token", "first")
    played = Played(problem(401, "unauthenticated"), OK, token_file=str(path))
    played.on_sent = lambda: write(path, "second")
    assert played.run(post(False)) == "done"
    assert [one.headers["Authorization"] for one in played.sent] == ["Bearer first", "Bearer second"]


def test_a_token_that_stays_refused_is_an_error(tmp_path: Path) -> None:
    played = Played(problem(401, "unauthenticated"), token_file=str(write(tmp_path / "token", "first")))
    with pytest.raises(Unauthenticated):
        played.run(post(True))
    assert (len(played.sent), played.pauses) == (1, [])


def test_a_missing_token_is_named_as_the_client_takes_it() -> None:
    """The API's own text is about the header."""
    with pytest.raises(Unauthenticated, match="wants a token, and this client has none: give it a token_file"):
        Played(problem(401, "unauthenticated")).run(post(True))


def test_an_api_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(StoreUnavailable, match="http://api cannot be reached: refused"):
        Played(NOT_SENT, retry_s=0).run(post(True))
