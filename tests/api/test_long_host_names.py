"""Names of hosts have up to 253 characters, as in DNS: on every way that leads to a host. Other names have up to 63."""

from pathlib import Path

import httpx
import pytest

from redsched.agent.machine.collector import MachineCollector
from redsched.agent.run import default_journal
from redsched.errors import InvalidRequest
from redsched.model.validation import check_name
from redsched.settings import Settings
from tests.api.parts import check_problem

HOST = ("node-17." + "rack-4." * 40)[:249] + ".lan"


def test_only_hosts_may_have_them() -> None:
    assert len(HOST) == 253
    assert check_name("host", HOST) == HOST
    with pytest.raises(InvalidRequest, match="use 1 to 253 letters"):
        check_name("host", f"{HOST}x")
    with pytest.raises(InvalidRequest, match="use 1 to 63 letters"):
        check_name("zone", HOST)


async def test_a_host_with_a_long_name_is_reported_claimed_moved_to_and_drained(api: httpx.AsyncClient) -> None:
    report = {"inventories": {"VCPU": {"total": 8}}, "lease_s": 3600}
    assert (await api.put(f"/v1/hosts/{HOST}/report", json=report)).status_code == 200
    check_problem(await api.put(f"/v1/hosts/{HOST}x/report", json=report), 422, "invalid-request")
    asked = {"resources": {"VCPU": 2}, "hosts": [HOST], "exclude_hosts": [f"{HOST[:-1]}x"]}
    answer = await api.post("/v1/selections", json=asked)
    assert answer.status_code == 201, answer.text
    [found] = answer.json()["selections"]
    assert found["host"] == HOST
    listed = await api.get("/v1/claims", params={"host": HOST})
    assert [one["claim_id"] for one in listed.json()["claims"]] == [found["claim_id"]]
    assert (await api.get("/v1/events", params={"host": HOST})).status_code == 200
    assert (await api.put("/v1/aggregates/long", json={"hosts": [HOST]})).status_code in (200, 201)
    assert (await api.post("/v1/explain", json=asked, params={"host": HOST})).status_code == 200
    moved = {"token": found["token"], "hosts": [HOST]}
    assert (await api.post(f"/v1/claims/{found['claim_id']}/move", json=moved)).status_code in (200, 202, 409)
    assert (await api.post("/v1/plans/drain", json={"hosts": [HOST]})).status_code == 200
    assert (await api.post(f"/v1/hosts/{HOST}/drain", json={"move": True})).status_code == 202
    assert (await api.get(f"/v1/hosts/{HOST}")).json()["status"] == "draining"


def test_the_journal_of_such_a_host_has_a_name_that_file_systems_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts that differ in the end of their names have journals of their own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    names = ("h1", HOST, f"{HOST[:-1]}x")
    paths = [default_journal(Settings(), [MachineCollector(Settings(host_name=one))]) for one in names]
    assert paths[0].name == "h1.sqlite"
    assert len(set(paths)) == 3
    assert max(len(f"{one.name}-journal") for one in paths) < 255
