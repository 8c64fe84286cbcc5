"""Payloads: any JSON value up to a size, kept in the text of a request, and looked into by nobody."""

import math
from typing import Any

import pytest

from redsched.errors import InvalidRequest
from redsched.model import GangMember, Request
from redsched.model.payload import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, payload_in, without_payload
from redsched.model.units import without_units

JOB: dict[str, Any] = {"argv": ["train.sh", "--name", "Ünal"], "env": {"LEVEL": "5m"}, "more": [None, True, 1.5, {}]}


def with_payload(payload: object) -> Request:
    return Request({"VCPU": 1}, payload=payload)


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels - 1):
        found = [found]
    return found


@pytest.mark.parametrize("payload", [JOB, [], {}, "", 0, False, "text", nested(MAX_PAYLOAD_DEPTH)])
def test_a_payload_comes_back_from_the_text_of_its_request(payload: object) -> None:
    """Also one that is empty, which is not the same as none."""
    request = with_payload(payload)
    assert payload_in(request.canonical()) == payload
    again = Request.from_canonical(request.canonical())
    assert (again.payload, again.digest()) == (payload, request.digest())
    assert request.body()["payload"] == payload


def test_none_is_no_payload() -> None:
    plain = Request({"VCPU": 1})
    assert with_payload(None).digest() == plain.digest()
    assert payload_in(plain.canonical()) is None
    assert payload_in(None) is None


def test_requests_with_other_payloads_differ_but_are_decided_alike() -> None:
    one, other = with_payload({"n": 1}), with_payload({"n": 2})
    assert one.digest() != other.digest()
    assert one.shape() == other.shape() == Request({"VCPU": 1}).shape()


def test_a_text_without_its_payload_is_that_of_the_same_request_without() -> None:
    plain = Request({"VCPU": 1})
    assert without_payload(with_payload(JOB).canonical()) == plain.canonical()
    assert without_payload(plain.canonical()) == plain.canonical()


@pytest.mark.parametrize("text", ['{"payload":', '["payload":]', '"payload":1'])
def test_a_text_that_somebody_has_overwritten_has_no_payload(text: str) -> None:
    assert payload_in(text) is None
    assert without_payload(text) == text


def test_its_size_is_that_of_its_json_in_utf_8() -> None:
    with_payload("x" * (MAX_PAYLOAD_BYTES - 2))
    with_payload("ü" * ((MAX_PAYLOAD_BYTES - 2) // 2))
    for large in ("x" * (MAX_PAYLOAD_BYTES - 1), "ü" * (MAX_PAYLOAD_BYTES // 2)):
        with pytest.raises(InvalidRequest, match=rf"payload has \d+ bytes as JSON: at most {MAX_PAYLOAD_BYTES}"):
            with_payload(large)


@pytest.mark.parametrize("payload", [{"a", "b"}, math.nan, [math.inf], {1: 2, "a": 3}, "\ud800", b"x", object()])
def test_what_is_not_json_is_refused(payload: object) -> None:
    with pytest.raises(InvalidRequest, match="payload is not a JSON value"):
        with_payload(payload)


def test_a_payload_that_contains_itself_is_refused() -> None:
    payload: list[Any] = []
    payload.append(payload)
    with pytest.raises(InvalidRequest, match="payload is not a JSON value"):
        with_payload(payload)


def test_a_payload_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="nested too deeply: at most 64 levels"):
        with_payload(nested(MAX_PAYLOAD_DEPTH + 1))


def test_a_member_of_a_gang_has_none_of_its_own() -> None:
    with pytest.raises(InvalidRequest, match="set the payload of the request instead"):
        GangMember("db", with_payload(1))


def test_units_in_it_are_text() -> None:
    body = {"lease_s": "5m", "payload": {"lease_s": "5m", "resources": {"MEMORY_MB": "4Gi"}, "deep": [{"x_s": "1h"}]}}
    assert without_units(body) == {**body, "lease_s": 300}
