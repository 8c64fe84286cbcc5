"""The routes over two cells: a host and a claim are found wherever they are."""

from collections.abc import AsyncIterator

import httpx
import pytest

from redsched.model import HostReport, Inventory
from redsched.settings import Settings
from redsched.store.store import Store
from tests.api.parts import NEED, check_problem, client_of, declare_new, put_host
from tests.support.builders.homes import open_twin

VERBS = ("enable", "disable", "drain", "write-off")


@pytest.fixture
async def two_cells(clean_store: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the API over cells c1, with host h1, and c2, with the larger host h2."""
    settings = Settings(redis_url=clean_store, cells=("c1", "c2"))
    await declare_new(settings)
    async with client_of(settings) as client:
        await put_host(client, "h1")
        await put_host(client, "h2", cell="c2", inventories={"VCPU": {"total": 16}, "MEMORY_MB": {"total": 32_768}})
        yield client


async def test_a_claim_in_the_second_cell_from_selection_to_release(two_cells: httpx.AsyncClient) -> None:
    """The caller's own id does not name the cell; a retry gets the same claim."""
    large = {"resources": {"VCPU": 12, "MEMORY_MB": 4096}, "claim_ids": ["mine"]}
    first = await two_cells.post("/v1/selections", json=large)
    assert first.status_code == 201, first.text
    [found] = first.json()["selections"]
    assert (found["cell"], found["host"]) == ("c2", "h2")

    again = await two_cells.post("/v1/selections", json=large)
    assert (again.status_code, again.json()) == (200, first.json())
    check_problem(await two_cells.post("/v1/selections", json={**NEED, "claim_ids": ["mine"]}), 422, "claim-id-reused")

    claim = (await two_cells.get("/v1/claims/mine")).json()
    assert (claim["cell"], claim["host"], claim["token"]) == ("c2", "h2", found["token"])
    await two_cells.post("/v1/selections", json={**NEED, "hosts": ["h1"], "claim_ids": ["other"]})
    listed = (await two_cells.get("/v1/claims")).json()["claims"]
    assert [(one["claim_id"], one["cell"]) for one in listed] == [("other", "c1"), ("mine", "c2")]
    hosts = (await two_cells.get("/v1/hosts")).json()["hosts"]
    assert [(one["name"], one["cell"], one["claims"]) for one in hosts] == [("h1", "c1", 1), ("h2", "c2", 1)]

    assert (await two_cells.delete("/v1/claims/mine")).status_code == 204
    assert (await two_cells.get("/v1/claims/mine")).json()["state"] == "ended"
    assert (await two_cells.get("/v1/hosts/h2")).json()["slots"]["VCPU"]["free"] == 16
    check_problem(await two_cells.post("/v1/selections", json=large), 409, "claim-state")


async def test_calls_about_a_host_in_two_cells_name_one(clean_store: str, two_cells: httpx.AsyncClient) -> None:
    async with Store.connect(clean_store, Settings(cells=("c1", "c2"))) as store:
        await open_twin(store.cell("c1"), store.cell("c2"), HostReport("h1", {"VCPU": Inventory(1)}, lease_s=3600))
    listed = (await two_cells.get("/v1/hosts")).json()["hosts"]
    assert [(one["name"], one["cell"]) for one in listed] == [("h1", "c1"), ("h1", "c2"), ("h2", "c2")]
    for method, path in (("GET", ""), ("GET", "/drain"), ("DELETE", ""), *(("POST", f"/{one}") for one in VERBS)):
        problem = check_problem(await two_cells.request(method, f"/v1/hosts/h1{path}"), 409, "claim-state")
        assert problem["cells"] == ["c1", "c2"]
    for verb in VERBS[:-1]:
        assert (await two_cells.post(f"/v1/hosts/h1/{verb}?cell=c2")).status_code == 204
    await two_cells.post("/v1/hosts/h1/disable?cell=c2")
    states = [(await two_cells.get(f"/v1/hosts/h1?cell={one}")).json()["status"] for one in ("c1", "c2")]
    assert states == ["enabled", "disabled"]
    moving = await two_cells.post("/v1/hosts/h1/drain?cell=c2", json={"move": True})
    assert (moving.status_code, moving.headers["location"]) == (202, "/v1/hosts/h1/drain?cell=c2")
    assert (await two_cells.get(moving.headers["location"])).json()["status"] == "draining"
    check_problem(await two_cells.get("/v1/hosts/h1?cell=c9"), 404, "not-found")
    written_off = await two_cells.post("/v1/hosts/h1/write-off?cell=c2", json={"force": True})
    removed = await two_cells.delete("/v1/hosts/h1?cell=c2&force=true")
    assert (written_off.status_code, removed.status_code) == (204, 204)
    assert (await two_cells.get("/v1/hosts/h1")).json()["cell"] == "c1"


async def test_a_host_is_in_one_cell_of_those_there_are(two_cells: httpx.AsyncClient) -> None:
    report = {"inventories": {"VCPU": {"total": 1}}}
    check_problem(await two_cells.put("/v1/hosts/h1/report", json={**report, "cell": "c2"}), 409, "claim-state")
    check_problem(await two_cells.put("/v1/hosts/h3/report", json={**report, "cell": "c9"}), 404, "not-found")


async def test_an_agent_over_rest_cannot_bring_its_host_into_another_cell(two_cells: httpx.AsyncClient) -> None:
    agent = {"journal": "j", "nonce": "n", "number": 1}
    report = {"name": "h1", "inventories": {"VCPU": {"total": 1}}, "cell": "c2", "agent": agent}
    refused = check_problem(await two_cells.post("/v1/agent/calls/report", json=report), 409, "claim-state")
    assert "host h1 is in cell c1" in refused["detail"]
    attested = {"host": "h1", "epoch": "1-a", "agent": agent}
    check_problem(await two_cells.post("/v1/agent/calls/attest?cell=c2", json=attested), 409, "claim-state")


async def test_a_call_names_one_cell(two_cells: httpx.AsyncClient) -> None:
    """A report names it too, and may not name another one than the query."""
    path, body = "/v1/agent/calls/claim-ids", {"hosts": ["h1"]}
    check_problem(await two_cells.post(path, json=body), 422, "invalid-request")
    check_problem(await two_cells.post(f"{path}?cell=c1&cell=c2", json=body), 422, "invalid-request")
    check_problem(await two_cells.post(f"{path}?cell=c1&hosts=h2", json=body), 422, "invalid-request")
    check_problem(await two_cells.post(f"{path}?cell=c9", json=body), 404, "not-found")
    assert (await two_cells.post(f"{path}?cell=c2", json=body)).json() == {"ids": {"h1": []}}
    agent = {"journal": "j", "nonce": "n", "number": 1}
    report = {"name": "h1", "inventories": {"VCPU": {"total": 1}}, "cell": "c1", "agent": agent}
    check_problem(await two_cells.post("/v1/agent/calls/report?cell=c2", json=report), 422, "invalid-request")
