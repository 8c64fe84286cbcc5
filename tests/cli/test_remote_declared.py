"""Declaring over REST: whether an object is new is what the API has found, also if several people declare it."""

import json
from typing import Any

import httpx
import pytest

from redsched.cli.verbs.declared import AGGREGATES
from redsched.client import AsyncClient
from redsched.errors import StoreUnavailable
from redsched.model import Aggregate, Quota
from redsched.model.conditions import ABSENT, EXISTS, IfMatch


@pytest.mark.parametrize(("status", "new"), [(201, True), (200, False)])
async def test_the_status_of_the_reply_says_whether_it_is_new(status: int, new: bool) -> None:
    """One that is read before may have been declared by another person meanwhile, or deleted."""
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        shown: dict[str, Any] = {
            "/v1/quotas/web": {"project": "web", "limits": {"VCPU": 4}, "used": {}},
            "/v1/aggregates/ssd": {"name": "ssd", "metadata": {}, "hosts": ["h1"]},
        }
        return httpx.Response(status, json=shown[request.url.path])

    async with AsyncClient("http://localhost", transport=httpx.MockTransport(answer)) as fleet:
        quota, is_new_quota = await fleet.quotas.put(Quota("web", {"VCPU": 4}))
        aggregate, is_new_aggregate = await fleet.aggregates.put(Aggregate("ssd", {}, frozenset({"h1"})))
    assert (quota.limits, aggregate.hosts) == ({"VCPU": 4}, ("h1",))
    assert (is_new_quota, is_new_aggregate) == (new, new)
    assert sent == ["PUT", "PUT"]


async def test_an_object_that_changed_meanwhile_is_read_and_edited_again() -> None:
    sent: list[tuple[str | None, Any]] = []
    hosts = {'"first"': ["h1"], '"second"': ["h1", "h3"]}
    now = '"first"'

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal now
        if request.method == "PUT":
            sent.append((request.headers.get("If-Match"), json.loads(request.content)["hosts"]))
            if request.headers.get("If-Match") != '"second"':
                now = '"second"'
                problem = {
                    "type": "/problems/precondition-failed",
                    "title": "",
                    "status": 412,
                    "detail": "it has changed",
                }
                return httpx.Response(412, json=problem)
        return httpx.Response(200, json={"name": "ssd", "metadata": {}, "hosts": hosts[now]}, headers={"ETag": now})

    async with AsyncClient("http://localhost", transport=httpx.MockTransport(answer)) as fleet:
        await AGGREGATES.change(fleet, "ssd", "", lambda base: {"hosts": [*base["hosts"], "h2"]})
    assert sent == [('"first"', ["h1", "h2"]), ('"second"', ["h1", "h2", "h3"])]


@pytest.mark.parametrize(
    ("condition", "sent"),
    [
        (None, {}),
        (["a", "b"], {"If-Match": '"a", "b"'}),
        (EXISTS, {"If-Match": "*"}),
        (ABSENT, {"If-None-Match": "*"}),
    ],
)
async def test_a_condition_is_sent_in_its_header(condition: IfMatch, sent: dict[str, str]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        headers = ("If-Match", "If-None-Match")
        assert {name: request.headers[name] for name in headers if name in request.headers} == sent
        return httpx.Response(201, json={"name": "ssd", "metadata": {}, "hosts": []})

    async with AsyncClient("http://localhost", transport=httpx.MockTransport(answer)) as fleet:
        _, new = await fleet.aggregates.put(Aggregate("ssd"), condition)
    assert new


@pytest.mark.parametrize(("tag", "found"), [('W/"abc"', 'the ETag W/"abc"'), (None, "no ETag")])
async def test_a_tag_that_a_proxy_has_changed_is_named(tag: str | None, found: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["Accept-Encoding"] == "identity", "what is not compressed keeps its tag"
        return httpx.Response(
            200, json={"name": "ssd", "metadata": {}, "hosts": []}, headers={"ETag": tag} if tag else {}
        )

    async with AsyncClient("http://localhost", transport=httpx.MockTransport(answer)) as fleet:
        with pytest.raises(StoreUnavailable, match=f"the reply has {found}: a proxy"):
            await fleet.aggregates.tag("ssd")
