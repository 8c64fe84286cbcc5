"""Agents that say of a claim of somebody else that it is theirs: the claim stays where it is, and its owner's."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redsched.store.codec.claim_fields import alternates_name
from tests.api.access.parts import TOKENS, Callers, put_host, settings_of, token_file
from tests.api.parts import REPORT, check_problem, client_of

AGENT = {"journal": "j", "nonce": "n", "number": 1}
NEW = {"inventories": REPORT["inventories"], "zone": "az1", "agent": AGENT, "lease_s": 3600}


@pytest.fixture
async def victim(api: Callers) -> dict[str, Any]:
    """Return a claim of db that runs on h2; h1 has not reported yet."""
    await put_host(api, "h2")
    await api.claim("db-1", "db")
    claim = await api.done("operator", "GET", "/v1/claims/db-1")
    return dict(await api.done("operator", "POST", "/v1/claims/db-1/confirm", json={"token": claim["token"]}))


def later(token: str) -> str:
    """Return a token of the same epoch that has not been issued yet."""
    epoch, _, _ = token.partition(".")
    return f"{epoch}.999999"


@pytest.mark.parametrize("digest", ["", "d" * 32], ids=["without a digest", "with another digest"])
async def test_a_new_host_cannot_attest_to_a_claim_on_another_one(
    api: Callers, victim: dict[str, Any], digest: str
) -> None:
    """Its token would be newer than the right one, so the work on the right host would be stopped."""
    forged = later(victim["token"])
    record = {"digest": digest, "project": "db", "claimed_at_ms": str(victim["claimed_at_ms"]), "amount.VCPU": "1"}
    held = {"id": "db-1", "token": forged, "state": "active", "record": {k: v for k, v in record.items() if v}}
    answer = await api.done("of-h1", "POST", "/v1/agent/calls/report", json={**NEW, "name": "h1"})
    body = {"host": "h1", "epoch": answer["epoch"], "agent": AGENT, "held": [held]}
    answer = await api.done("of-h1", "POST", "/v1/agent/calls/attest", json=body)
    assert (answer["outcome"], answer["drop"]) == ("OK", [forged])
    assert await api.done("operator", "GET", "/v1/claims/db-1") == victim


async def test_nor_with_a_report(api: Callers, victim: dict[str, Any]) -> None:
    forged = later(victim["token"])
    claim = {"id": "db-1", "token": forged, "slots": {"VCPU": 1}, "project": "db", "digest": victim["digest"]}
    report = {"inventories": REPORT["inventories"], "zone": "az1"}
    answer = await api.done("of-h1", "PUT", "/v1/hosts/h1/report", json={**report, "claims": [claim]})
    assert (answer["attested"], answer["drop"]) == (True, [forged])
    assert await api.done("operator", "GET", "/v1/claims/db-1") == victim


async def test_a_host_that_has_read_the_claim_may_restore_its_placement(api: Callers, victim: dict[str, Any]) -> None:
    """A store that lost a move has the claim at its source only; the journal of the target has the rest."""
    target = later(victim["token"])
    known = {name: victim[name] for name in ("project", "digest", "claimed_at_ms")}
    claim = {**known, "id": "db-1", "token": target, "root": victim["token"], "slots": {"VCPU": 1}}
    report = {"inventories": REPORT["inventories"], "zone": "az1"}
    answer = await api.done("of-h1", "PUT", "/v1/hosts/h1/report", json={**report, "claims": [claim]})
    assert (answer["attested"], answer["drop"]) == (True, [])
    now = await api.done("operator", "GET", "/v1/claims/db-1")
    assert {one["host"] for one in now["placements"]} == {"h1", "h2"}


async def test_lists_of_alternates_are_those_of_claims_on_the_host(api: Callers) -> None:
    await put_host(api, "h1")
    token = (await api.claim("web-1", "web"))["token"]
    claims = [
        {"id": claim_id, "token": given, "slots": {"VCPU": 1}, "alternates": ["h1"]}
        for claim_id, given in (("web-1", token), ("unknown", later(token)))
    ]
    await api.done("of-h1", "PUT", "/v1/hosts/h1/report", json={**REPORT, "claims": claims})
    store = api.client._transport.app.state.scheduler.agents.store("")  # type: ignore[attr-defined]
    names = [alternates_name("web-1"), alternates_name("unknown")]
    assert await store.texts.missing(names) == [alternates_name("unknown")]


@pytest.fixture
async def two_cells(clean_store: str, tmp_path: Path) -> AsyncIterator[Callers]:
    """Yield callers of an API over cells c1, with host h1, and c2, with h2, whose agent may report work of web."""
    file = token_file(tmp_path, **{"of-h2": {**TOKENS["of-h2"], "projects": ["web"]}})
    settings = settings_of(clean_store, file).model_copy(update={"cells": ("c1", "c2")})
    async with client_of(settings, is_new=True) as client:
        api = Callers(client)
        await put_host(api, "h1")
        await put_host(api, "h2", cell="c2")
        yield api


async def test_local_work_does_not_hide_or_end_a_claim_with_its_id_in_another_cell(two_cells: Callers) -> None:
    asked = {"resources": {"VCPU": 1}, "project": "db", "hosts": ["h1"], "lease_s": 3600}
    [made] = (await two_cells.done("operator", "POST", "/v1/selections", json=asked))["selections"]
    path = f"/v1/claims/{made['claim_id']}"
    local = {"host": "h2", "claim_id": made["claim_id"], "amounts": {"VCPU": 1}, "project": "web"}
    found = await two_cells.done("of-h2", "POST", "/v1/agent/calls/local?cell=c2", json=local)
    assert found["outcome"] == "OK"
    for who in ("db", "operator"):
        claim = await two_cells.done(who, "GET", path)
        assert (claim["host"], claim["project"], claim["state"]) == ("h1", "db", "claimed")
    check_problem(await two_cells.send("web", "DELETE", path), 404, "not-found")
    [refused] = (await two_cells.done("web", "DELETE", "/v1/claims?project=web"))["results"]
    assert refused["outcome"] == "refused"
    assert (await two_cells.done("db", "GET", path))["state"] == "claimed"
