"""Tenants: the claims of their own projects alone, no names of other hosts, and no trace of other claims."""

import json
from typing import Any

import httpx
import pytest

from tests.api.access.parts import VERBS, Callers, settle
from tests.api.parts import check_problem, held
from tests.auth.parts import token

TOO_MUCH = {"resources": {"VCPU": 1000}}
HOSTS = ("h1", "h2", "h3")


def alike(answer: httpx.Response, claim_id: str) -> tuple[int, str, list[tuple[str, str]]]:
    """Return all of a response but the id that it was asked for, and the id of the request."""
    headers = [one for one in answer.headers.items() if one[0] not in ("content-length", "x-request-id")]
    text = answer.text.replace(answer.headers.get("x-request-id", "none"), "REQUEST").replace(claim_id, "ID")
    return answer.status_code, text, headers


@pytest.mark.parametrize("verb", [*VERBS, "unshelve", "get", "events", "release", "release-token", "release-force"])
async def test_a_foreign_claim_looks_like_an_unknown_one(api: Callers, clean_store: str, verb: str) -> None:
    """Byte for byte, except the id: with the right token of the claim, too."""
    claims = await settle(api)
    before = held(clean_store)

    async def send(claim_id: str) -> httpx.Response:
        path, given = f"/v1/claims/{claim_id}", claims["db-1"]["token"]
        if verb in ("get", "events"):
            return await api.send("web", "GET", path if verb == "get" else f"{path}/events")
        if verb.startswith("release"):
            query = {"release": "", "release-token": f"?token={given}", "release-force": "?force=true"}[verb]
            return await api.send("web", "DELETE", f"{path}{query}")
        body = {"json": {"token": given, **VERBS[verb]}} if verb in VERBS else {}
        return await api.send("web", "POST", f"{path}/{verb}", **body)

    foreign, unknown = await send("db-1"), await send("db-9")
    assert alike(foreign, "db-1") == alike(unknown, "db-9")
    expected = {"events": 200, "release-force": 403}
    assert foreign.status_code == expected.get(verb, 404), foreign.text
    assert held(clean_store) == before


async def test_ended_and_shelved_claims_of_others_look_like_unknown_ones(settled: Callers) -> None:
    await settled.done("operator", "DELETE", "/v1/claims/db-1")
    for known, unknown in (("db-1", "db-8"), ("db-shelved", "db-9")):
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/unshelve")):
            answers = [await settled.send("web", method, f"/v1/claims/{one}{path}") for one in (known, unknown)]
            assert alike(answers[0], known) == alike(answers[1], unknown)


async def test_a_release_of_an_unknown_id_voids_nothing_for_a_tenant(settled: Callers, clean_store: str) -> None:
    before = held(clean_store)
    assert (await settled.send("web", "DELETE", "/v1/claims/db-9")).status_code == 404
    assert held(clean_store) == before


async def test_lists_usage_quotas_and_events_have_what_is_ones_own(settled: Callers) -> None:
    async def ids(path: str) -> list[str]:
        return [one["claim_id"] for one in (await settled.done("web", "GET", path))["claims"]]

    assert await ids("/v1/claims") == ["web-1"]
    assert await ids("/v1/claims?state=shelved") == ["web-shelved"]
    assert await ids("/v1/claims?project=db") == []
    assert await ids("/v1/claims?project=db&project=web") == ["web-1"]
    assert [one["project"] for one in (await settled.done("web", "GET", "/v1/quotas"))["quotas"]] == ["web"]
    usage = (await settled.done("web", "GET", "/v1/usage?by=class,project"))["usage"]
    assert usage == [{"project": "web", "used": {"VCPU": 1, "claims": 1}}]
    foreign, unknown = [await settled.send("web", "GET", f"/v1/quotas/{one}") for one in ("db", "zz")]
    assert alike(foreign, "db") == alike(unknown, "zz")
    assert foreign.status_code == 404
    for path in ("/v1/events", "/v1/events?newest=true", "/v1/events?project=db", "/v1/claims/db-1/events"):
        assert "db-" not in (await settled.send("web", "GET", path)).text


async def test_a_filter_by_host_is_for_those_who_see_hosts(settled: Callers) -> None:
    for path in ("/v1/claims?host=h1", "/v1/events?host=h1"):
        check_problem(await settled.send("web", "GET", path), 403, "forbidden")
        assert (await settled.send("web-sees", "GET", path)).status_code == 200
    assert (await settled.done("web-sees", "GET", "/v1/claims?host=h2"))["claims"] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/v1/claims?project=db"),
        ("DELETE", "/v1/claims?consumer=x&project=db"),
        ("POST", "/v1/claims/renew?project=db&lease_s=9"),
        ("POST", "/v1/claims/shelve?project=db"),
        ("POST", "/v1/claims/unshelve?project=db"),
    ],
)
async def test_bulk_verbs_with_a_foreign_project_touch_nothing(
    settled: Callers, clean_store: str, method: str, path: str
) -> None:
    before = held(clean_store)
    assert await settled.done("web", method, path) == {"results": [], "next": None, "watch": None}
    assert held(clean_store) == before


async def test_bulk_verbs_touch_own_claims_alone(settled: Callers) -> None:
    """A filter is still required, and force is refused."""
    check_problem(await settled.send("web", "DELETE", "/v1/claims"), 422, "invalid-request")
    check_problem(await settled.send("web", "DELETE", "/v1/claims?cell=c1&force=true"), 403, "forbidden")
    found = await settled.done("web", "DELETE", "/v1/claims?cell=c1")
    assert [one["claim_id"] for one in found["results"]] == ["web-1"]
    assert (await settled.done("operator", "GET", "/v1/claims/db-1"))["state"] == "claimed"


async def test_force_is_for_operators(settled: Callers) -> None:
    check_problem(await settled.send("web", "DELETE", "/v1/claims/web-1?force=true"), 403, "forbidden")
    check_problem(await settled.send("web-sees", "DELETE", "/v1/claims/web-1?force=true"), 403, "forbidden")
    assert (await settled.send("web", "DELETE", "/v1/claims/web-1")).status_code == 204


async def test_the_project_is_ones_own(settled: Callers) -> None:
    """With one project it may be left out; the empty project is one like any other."""
    need = {"resources": {"VCPU": 1}}
    for path in ("/v1/selections", "/v1/explain"):
        check_problem(await settled.send("web", "POST", path, json={**need, "project": "db"}), 403, "forbidden")
        check_problem(await settled.send("both", "POST", path, json=need), 403, "forbidden")
    first = (await settled.done("web", "POST", "/v1/selections", json=need))["selections"][0]["claim_id"]
    assert (await settled.done("operator", "GET", f"/v1/claims/{first}"))["project"] == "web"
    nameless = (await settled.done("nameless", "POST", "/v1/selections", json=need))["selections"][0]["claim_id"]
    assert (await settled.done("operator", "GET", f"/v1/claims/{nameless}"))["project"] == ""
    assert (await settled.send("web", "GET", f"/v1/claims/{nameless}")).status_code == 404
    listed = (await settled.done("nameless", "GET", "/v1/claims"))["claims"]
    assert [one["claim_id"] for one in listed] == [nameless]
    events = (await settled.done("nameless", "GET", "/v1/events"))["events"]
    assert {one.get("claim") for one in events} <= {nameless}


async def test_chosen_ids_begin_with_the_prefix(settled: Callers) -> None:
    need = {"resources": {"VCPU": 1}, "project": "web"}
    found = await settled.send("web", "POST", "/v1/selections", json={**need, "claim_ids": ["db-7"]})
    assert "'web-'" in check_problem(found, 403, "forbidden")["detail"]
    assert (await settled.send("web", "POST", "/v1/selections", json={**need, "claim_ids": ["web-7"]})).is_success
    assert (await settled.send("db", "POST", "/v1/selections", json={**need, "project": "db"})).is_success


async def test_idempotency_keys_of_two_projects_do_not_meet(settled: Callers) -> None:
    key = {"Idempotency-Key": "order-1"}

    async def claim(who: str, project: str) -> str:
        request = settled.client.build_request(
            "POST", "/v1/selections", json={"resources": {"VCPU": 1}, "project": project}, headers=key
        )
        request.headers["Authorization"] = f"Bearer {token(who)}"
        return str((await settled.client.send(request)).json()["selections"][0]["claim_id"])

    web, db = await claim("both", "web"), await claim("both", "db")
    assert web != db
    assert await claim("db", "db") == db  # the same with another token of the project
    assert (await claim("web", "web")).startswith("web-key-")


@pytest.mark.parametrize("hint", ["same_host", "different_host"])
async def test_hints_name_own_claims_alone(settled: Callers, hint: str) -> None:
    """In members too. A foreign claim is as unknown as one that does not exist."""

    def asked(claim_id: str) -> list[dict[str, Any]]:
        place = {"resources": {"VCPU": 1}, "hints": {hint: [claim_id]}}
        return [{**place, "project": "web"}, {"members": [{"name": "a", **place}], "project": "web"}]

    for path in ("/v1/selections", "/v1/explain"):
        for foreign, unknown, own in zip(asked("db-1"), asked("db-9"), asked("web-1"), strict=True):
            answers = [await settled.send("web", "POST", path, json=one) for one in (foreign, unknown)]
            assert alike(answers[0], "db-1") == alike(answers[1], "db-9")
            assert answers[0].status_code == 404
            assert (await settled.send("web", "POST", path, json=own)).is_success


@pytest.mark.parametrize(
    "named",
    [
        {"hosts": ["h1"]},
        {"exclude_hosts": ["h1"]},
        {"query": ["=", "$host", "h1"]},
        {"query": ["and", ["=", "$zone", "az1"], ["in", "$host", "h1"]]},
    ],
    ids=str,
)
async def test_naming_hosts_is_for_those_who_see_them(settled: Callers, named: dict[str, Any]) -> None:
    need = {"resources": {"VCPU": 1}, "project": "web"}
    for asked in ({**need, **named}, {"members": [{"name": "a", "resources": {"VCPU": 1}, **named}], "project": "web"}):
        for path in ("/v1/selections", "/v1/explain"):
            check_problem(await settled.send("web", "POST", path, json=asked), 403, "forbidden")
            assert (await settled.send("web-sees", "POST", path, json=asked)).is_success


async def test_move_and_fail_name_hosts_only_for_those_who_see_them(api: Callers) -> None:
    given = (await settle(api))["web-1"]["token"]
    moved = {"token": given, "hosts": ["h3"]}
    check_problem(await api.send("web", "POST", "/v1/claims/web-1/move", json=moved), 403, "forbidden")
    failed = {"token": given, "alternates": ["h3"]}
    check_problem(await api.send("web", "POST", "/v1/claims/web-1/fail", json=failed), 403, "forbidden")
    assert (await api.send("web-sees", "POST", "/v1/claims/web-1/move", json=moved)).status_code == 202


def names_hosts(answer: httpx.Response, *besides: str) -> list[str]:
    """Return the hosts that a whole response names, with its headers."""
    words = json.dumps([answer.text, *answer.headers.items()])
    return [host for host in HOSTS if host in words and host not in besides]


async def test_refusals_explanations_and_dry_runs_name_no_host(settled: Callers) -> None:
    """Those who see hosts get the names: the requests are such that there are some."""
    near = {**TOO_MUCH, "project": "web"}
    gang = {
        "members": [{"name": "a", **TOO_MUCH}, {"name": "b", "count": 2, "resources": {"VCPU": 1}}],
        "project": "web",
    }
    requests: list[tuple[str, dict[str, Any]]] = [
        ("/v1/selections", near),
        ("/v1/selections", {**near, "claim": False}),
        ("/v1/selections", gang),
        ("/v1/selections", {"resources": {"VCPU": 1}, "claim": False, "alternates": 3, "project": "web"}),
        ("/v1/explain", near),
        ("/v1/explain", gang),
        ("/v1/explain", {"resources": {"VCPU": 1}, "project": "web"}),
    ]
    for path, asked in requests:
        assert names_hosts(await settled.send("web", "POST", path, json=asked)) == [], asked
        assert names_hosts(await settled.send("web-sees", "POST", path, json=asked)) != [], asked
    for query in ("?host=h1", "?limit=9"):
        check_problem(await settled.send("web", "POST", f"/v1/explain{query}", json=near), 403, "forbidden")
        assert (await settled.send("web-sees", "POST", f"/v1/explain{query}", json=near)).is_success


async def test_a_claim_names_its_own_host_and_no_alternate(settled: Callers) -> None:
    asked = {"resources": {"VCPU": 1}, "alternates": 2, "claim_ids": ["web-7"]}
    made = await settled.send("web", "POST", "/v1/selections", json=asked)
    host = made.json()["selections"][0]["host"]
    assert host in HOSTS
    assert names_hosts(made, host) == []
    assert made.json()["selections"][0]["alternates"] == []
    for path in ("/v1/claims/web-7", "/v1/claims"):
        shown = await settled.send("web", "GET", path)
        assert names_hosts(shown, host, "h1") == []
    again = await settled.send("web", "POST", "/v1/selections", json=asked)
    assert (again.status_code, names_hosts(again, host)) == (200, [])


async def test_refused_moves_resizes_and_failures_name_no_other_host(api: Callers) -> None:
    """All other hosts are full. The failure ends the claim, and is in its reason and its events."""
    given = (await settle(api))["web-1"]["token"]
    for host, free in (("h2", 7), ("h3", 8)):
        await api.claim(f"full-{host}", "db", resources={"VCPU": free}, hosts=[host])
    refused = [
        await api.send("web", "POST", "/v1/claims/web-1/resize", json={"token": given, **TOO_MUCH}),
        await api.send("web", "POST", "/v1/claims/web-1/move", json={"token": given}),
        await api.send("web", "POST", "/v1/claims/web-1/fail", json={"token": given}),
    ]
    for answer in refused:
        assert answer.status_code == 409, answer.text
        assert names_hosts(answer, "h1") == [], answer.text
    for path in ("/v1/claims/web-1", "/v1/claims/web-1/events", "/v1/events?newest=true"):
        assert names_hosts(await api.send("web", "GET", path), "h1") == [], path


async def test_bulk_results_name_no_other_host(api: Callers) -> None:
    """Unshelving finds no room, and its problem would name the nearest host."""
    await settle(api)
    for host, free in (("h1", 7), ("h2", 7), ("h3", 8)):
        await api.claim(f"full-{host}", "db", resources={"VCPU": free}, hosts=[host])
    found = await api.send("web", "POST", "/v1/claims/unshelve?project=web")
    assert found.json()["results"][0]["outcome"] == "refused"
    assert names_hosts(found, "h1") == [], found.text
    assert names_hosts(await api.send("web", "POST", "/v1/claims/web-shelved/unshelve"), "h1") == []
    assert names_hosts(await api.send("operator", "POST", "/v1/claims/web-shelved/unshelve"), "h1") != []


async def test_a_refusal_does_not_tell_whether_a_word_of_the_request_is_a_host(settled: Callers) -> None:
    """Words of a request are repeated as they are: hiding one would tell that it names a host."""
    for word in (*HOSTS, "h9"):
        group = {"name": word, "resources": {"VCPU": 1000}}
        found = await settled.send("web", "POST", "/v1/selections", json={"groups": [group], "project": "web"})
        assert found.status_code == 409
        assert f"in group {word}" in found.json()["detail"]
        assert f"nearest {word}" not in found.json()["detail"]


async def test_a_reader_sees_all_and_writes_nothing(settled: Callers) -> None:
    found = (await settled.done("reader", "GET", "/v1/claims"))["claims"]
    assert {one["claim_id"] for one in found} == {"web-1", "db-1"}
    refused = await settled.send("reader", "POST", "/v1/selections", json={"resources": {"VCPU": 1}})
    check_problem(refused, 403, "forbidden")
