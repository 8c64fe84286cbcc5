"""What whoever has the token of one host's agent can send to the relay: each call, and what is no call.

The token of h1 is for host h1, project web, zone az1 and label rack; claim db-1 is on h2, and is of project db.
"""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from pydantic_core import to_json

from redsched.api import examples
from redsched.model.limits import MAX_CALL_CLAIMS, MAX_CALL_HOSTS, MAX_HOST_SLOTS, MAX_REQUEST_BYTES
from redsched.model.tokens import Token
from redsched.store.agent_calls import CALLS, MAX_TEXT, NAMES, AgentCall, ReportCall
from tests.api.access.parts import TOKENS, Callers, bearer, settings_of, settle, token_file
from tests.api.parts import check_problem, client_of, held

AGENT = {"journal": "j", "nonce": "n", "number": 1}
ABOUT_CLAIMS = [name for name in CALLS if "claim_id" in examples.CALLS[name]]
BY_TOKEN = [name for name in CALLS if "token" in examples.CALLS[name]]


def path(name: str) -> str:
    return f"/v1/agent/calls/{name}"


async def send_text(api: Callers, name: str, text: bytes) -> httpx.Response:
    """Send a call as the agent of h1, with this text as its body."""
    headers = [*bearer("of-h1"), ("Content-Type", "application/json")]
    return await api.client.post(path(name), content=text, headers=headers)


def about(call: type[AgentCall[Any]], *hosts: str, **changed: Any) -> dict[str, Any]:
    """Return the example of a call, about these hosts and not h17, and without a wait."""
    found, names = dict(examples.CALLS[NAMES[call]]), hosts or ("h1",)
    for field in ("hosts", "after"):
        if isinstance(known := found.get(field), list):
            found[field] = [*names]
        elif isinstance(known, dict):
            found[field] = dict.fromkeys(names, known["h17"])
    one = "name" if call is ReportCall else "host"
    found |= {one: names[-1]} if one in found else {}
    found |= {"timeout_s": 0} if "timeout_s" in found else {}
    return found | changed


@pytest.mark.parametrize("name", CALLS)
async def test_no_call_is_about_hosts_of_others(settled: Callers, clean_store: str, name: str) -> None:
    """Also if it names the caller's own host beside them; and whether or not there is such a host."""
    before = held(clean_store)
    for others in (("h2",), ("h1", "h2"), ("h1", "unknown")):
        answer = await settled.send("of-h1", "POST", path(name), json=about(CALLS[name], *others))
        found = check_problem(answer, 403, "forbidden")
        assert f"host {others[-1]!r} is none of the hosts" in found["detail"]
    assert held(clean_store) == before


@pytest.mark.parametrize("name", CALLS)
async def test_no_call_is_for_people(settled: Callers, clean_store: str, name: str) -> None:
    before = held(clean_store)
    for who in ("web", "reader"):
        check_problem(await settled.send(who, "POST", path(name), json=about(CALLS[name])), 403, "forbidden")
    for who in ("no token", "forged"):
        check_problem(await settled.send(who, "POST", path(name), json=about(CALLS[name])), 401, "unauthenticated")
    assert held(clean_store) == before


@pytest.mark.parametrize("name", BY_TOKEN)
async def test_no_call_changes_a_placement_on_another_host(api: Callers, clean_store: str, name: str) -> None:
    """Though its claim and its token are known, and the host in the call is the caller's own."""
    token = (await settle(api))["db-1"]["token"]
    before = held(clean_store)
    body = about(CALLS[name], claim_id="db-1", token=token)
    found = await api.done("of-h1", "POST", path(name), json=body)
    assert found["outcome"] in ("STALE", "UNKNOWN", "NOT_ATTESTED")
    assert held(clean_store) == before


async def test_nothing_is_read_of_a_claim_on_another_host(settled: Callers, clean_store: str) -> None:
    before = held(clean_store)
    names = ["request:d0", "alternates:db-1"]
    for name, fields, shown in (
        ("claims", {"ids": ["db-1"]}, {"claims": {}}),
        ("claim-ids", {}, {"ids": {"h1": ["web-1"]}}),
        ("texts", {"claim_id": "db-1", "names": names}, {"texts": {}}),
        ("inboxes", {}, None),
    ):
        found = await settled.done("of-h1", "POST", path(name), json=about(CALLS[name], **fields))
        assert "db-" not in str(found) or shown == found, name
        assert shown in (None, found), name
    lost = {"claim_id": "db-1", "name": "alternates:db-1", "text": "h1"}
    await settled.done("of-h1", "POST", path("restore-text"), json=about(CALLS["restore-text"], **lost))
    assert held(clean_store) == before


@pytest.mark.parametrize("name", ABOUT_CLAIMS)
async def test_no_call_names_keys_of_the_store(settled: Callers, clean_store: str, name: str) -> None:
    """Agents with access to the store name what counts a claim, to save a call: nobody else may."""
    before = held(clean_store)
    for more in ({"objects": ["quota:db"]}, {"cell": "c1"}, {"run": "x"}, {"claim_id": "a:b"}, {"claim_id": "a b"}):
        answer = await settled.send("of-h1", "POST", path(name), json=about(CALLS[name], **more))
        check_problem(answer, 422, "invalid-request")
    assert held(clean_store) == before


@pytest.mark.parametrize(
    "name",
    ["place", "release", "write-off", "run", "__class__", "Accept", "accept ", "hosts.report", "x" * 300],
)
async def test_what_is_no_call_is_not_found(settled: Callers, clean_store: str, name: str) -> None:
    """Commands of the store that agents do not have, and attributes of Python's objects."""
    before = held(clean_store)
    found = check_problem(await settled.send("of-h1", "POST", path(name), json={"host": "h1"}), 404, "not-found")
    assert len(found["detail"]) < 500
    for odd in (f"{name}/accept", f"../{name}", f"{name}%2Faccept"):
        assert (await settled.send("of-h1", "POST", path(odd), json={"host": "h1"})).status_code in (404, 422)
    assert held(clean_store) == before


async def test_calls_are_sent_by_post_alone(settled: Callers) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        found = await settled.send("of-h1", method, path("claim-ids"), json={"hosts": ["h1"]})
        check_problem(found, 405, "method-not-allowed")


@pytest.mark.parametrize("name", CALLS)
async def test_a_body_has_a_limit_before_it_is_parsed(settled: Callers, name: str) -> None:
    """That of a report, an attestation or a list of texts is max_body_bytes, that of each other call is lower."""
    limit = settled.client._transport.app.state.settings.max_body_bytes  # type: ignore[attr-defined]
    most = limit if CALLS[name].is_large else MAX_REQUEST_BYTES
    assert most <= limit
    text = b'{"host": "h1", "x": "' + b"a" * most + b'"}'
    check_problem(await send_text(settled, name, text), 413, "body-too-large")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("claim-ids", {"hosts": [f"h{number}" for number in range(MAX_CALL_HOSTS + 1)]}),
        ("claim-ids", {"hosts": []}),
        ("claims", {"ids": [f"a{number}" for number in range(MAX_CALL_CLAIMS + 1)]}),
        ("heartbeats", {"hosts": {}}),
        ("inboxes", {"timeout_s": 3600}),
        ("inboxes", {"timeout_s": float("inf")}),
        ("inboxes", {"after": {"h1": "9" * 40}}),
        ("texts", {"names": ["alternates:a"] * 3}),
        ("texts", {"names": ["decision:web-1"]}),
        ("restore-text", {"text": "h3 " * MAX_TEXT}),
        ("fail", {"reason": "x" * 1001}),
        ("gone", {"external": {f"gpu{number}/VGPU": 1 for number in range(MAX_HOST_SLOTS + 1)}}),
        ("gone", {"end_reason": "moved"}),
        ("resized", {"amounts": {"VCPU": -1}}),
        ("resized", {"amounts": {"VCPU": 2**60}}),
        ("accept", {"lease_s": 10**9}),
        ("confirm", {"log": "/var/log/\x1b[2J"}),
        ("report", {"lease_s": "30"}),
        ("attest", {"held": [{"id": "a", "token": "1-a.1", "record": {"tried": "h2"}}]}),
        ("raise-epoch", {"above": ""}),
    ],
    ids=lambda one: one if isinstance(one, str) else "-".join(one),
)
async def test_fields_have_their_limits(
    settled: Callers, clean_store: str, name: str, changed: Mapping[str, Any]
) -> None:
    before = held(clean_store)
    body = to_json(about(CALLS[name], **changed))
    answer = await send_text(settled, name, body)
    assert answer.status_code == (413 if len(body) > MAX_REQUEST_BYTES else 422), answer.text
    assert held(clean_store) == before


async def test_another_cell_is_refused_in_the_query_and_in_a_report(clean_store: str, tmp_path: Any) -> None:
    file = token_file(tmp_path, **{"of-h1": {**TOKENS["of-h1"], "cell": "c1"}})
    settings = settings_of(clean_store, file).model_copy(update={"cells": ("c1", "c2")})
    async with client_of(settings, is_new=True) as client:
        api = Callers(client)
        for name, call in CALLS.items():
            body = about(call, **({"cell": "c2"} if call is ReportCall else {}))
            answer = await api.send("of-h1", "POST", f"{path(name)}?cell=c2", json=body)
            found = check_problem(answer, 403, "forbidden")
            assert "may not report cell 'c2'" in found["detail"], name
        # The cell of a report is in its body: the query cannot lead past the check.
        report = about(ReportCall, cell="c2")
        check_problem(await api.send("of-h1", "POST", path("report"), json=report), 403, "forbidden")
        check_problem(await api.send("of-h1", "POST", f"{path('report')}?cell=c1", json=report), 422, "invalid-request")


@pytest.mark.parametrize("changed", [{"zone": "az2"}, {"labels": {"tier": "gold"}}], ids=["zone", "labels"])
async def test_a_report_has_the_zone_and_labels_of_the_token(
    settled: Callers, clean_store: str, changed: dict[str, Any]
) -> None:
    before = held(clean_store)
    answer = await settled.send("of-h1", "POST", path("report"), json=about(ReportCall, **changed))
    check_problem(answer, 403, "forbidden")
    assert held(clean_store) == before


async def test_replayed_calls_of_an_earlier_epoch_change_nothing(api: Callers, clean_store: str) -> None:
    """Whoever has recorded what an agent sent can send it again: the store knows the epoch that it is of."""
    claim = (await settle(api))["web-1"]
    old = claim["token"].partition(".")[0]
    raised = await api.done("operator", "POST", path("raise-epoch"), json={"host": "h1", "above": old})
    assert raised["outcome"] == "OK"
    before, epoch = held(clean_store), raised["epoch"]
    attest = about(CALLS["attest"], epoch=old, agent=AGENT)
    assert (await api.done("of-h1", "POST", path("attest"), json=attest))["outcome"] == "WRONG_EPOCH"
    for name in ("accept", "confirm", "renew", "gone", "fail", "resized", "work-ended", "stop-failed"):
        body = about(CALLS[name], claim_id="web-1", token=claim["token"])
        body |= {"epoch": old} if name == "confirm" else {}
        found = await api.done("of-h1", "POST", path(name), json=body)
        assert found["outcome"] in ("NOT_ATTESTED", "SETTLING"), (name, found)
    ahead = f"{Token.parse(f'{epoch}.0').epoch_ms + 1}-a"
    held_later = [{"id": "web-1", "token": f"{ahead}.1", "record": {"amount.VCPU": "1"}}]
    attest = about(CALLS["attest"], epoch=epoch, agent=AGENT, held=held_later)
    check_problem(await api.send("of-h1", "POST", path("attest"), json=attest), 422, "invalid-request")
    assert held(clean_store) == before


async def test_a_replayed_report_does_not_replace_a_later_one(api: Callers) -> None:
    await settle(api)
    first = about(ReportCall, agent={**AGENT, "number": 1})
    later = about(ReportCall, agent={**AGENT, "number": 2}, inventories={"VCPU": {"total": 8}})
    await api.done("of-h1", "POST", path("report"), json=first)
    await api.done("of-h1", "POST", path("report"), json=later)
    assert (await api.done("of-h1", "POST", path("report"), json=first))["outcome"] == "ALREADY_DONE"
    assert (await api.done("operator", "GET", "/v1/hosts/h1"))["slots"]["VCPU"]["total"] == 8


async def test_keys_given_twice_are_refused(settled: Callers) -> None:
    """One of them would be checked, and another one used, by whatever reads the body on the way."""
    for name, text in (
        ("claim-ids", b'{"hosts": ["h1"], "hosts": ["h2"]}'),
        ("devices", b'{"host": "h2", "host": "h1"}'),
    ):
        check_problem(await send_text(settled, name, text), 422, "invalid-request")
