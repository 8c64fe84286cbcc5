"""Every map, list and text that a stranger sends has a cap, and what is over it is refused with a clear error."""

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from pydantic_core import to_json

from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.limits import MAX_CELL_SLOTS, MAX_CONDITIONS, MAX_HOST_CLAIMS, MAX_HOST_SLOTS, MAX_REQUEST_BYTES
from redsched.model.payload import MAX_PAYLOAD_BYTES
from redsched.model.records.problems import members
from redsched.requests import parsing
from redsched.requests.parsing import parse
from redsched.requests.reports import ReportBody, check_report_size
from redsched.settings import Settings
from tests.api.parts import NEED, REPORT, check_problem, client_of, put_host

VCPU = {"resources": {"VCPU": 1}}
MANY = {f"k{number}": "x" for number in range(MAX_CONDITIONS + 1)}
TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "labels": ({"labels": MANY}, "labels"),
    "aggregate_metadata": ({"aggregate_metadata": MANY}, "aggregate_metadata"),
    "properties": ({"properties": MANY}, "properties"),
    "weights": ({"weights": dict.fromkeys(MANY, 1.0)}, "weights"),
    "any_of": ({"any_of": [[f"CUSTOM_{number}" for number in range(65)]]}, "any_of[0]"),
    "any_of of a group": (
        {"groups": [{"name": "a", **VCPU, "any_of": [[f"CUSTOM_{number}" for number in range(65)]]}]},
        "groups[0].any_of[0]",
    ),
    "any_of as lists": ({"any_of": [["HW_CPU_X86_AVX2"]] * 65}, "any_of"),
    "same_subtree": ({"same_subtree": [["a"]] * 65}, "same_subtree"),
    "page size 0": ({"numa": {"cells": [{"cpus": 1, "memory_mb": 4}], "page_size_kb": 0}}, "numa"),
}
POOLS = {f"p{number}": {"inventories": {"VCPU": {"total": 1}}} for number in range(256)}


def claim(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "token": "1-a.1", "slots": {"VCPU": 1}, **fields}


BAD_REPORTS: dict[str, dict[str, Any]] = {
    "slots": {"inventories": {f"CUSTOM_{number}": {"total": 1} for number in range(64)}}
    | {
        "pools": {
            f"p{number}": {"inventories": {f"CUSTOM_{n}": {"total": 1} for n in range(64)}}
            for number in range(MAX_HOST_SLOTS // 64)
        }
    },
    "claims": {"claims": [claim(id=f"c{number}") for number in range(MAX_HOST_CLAIMS + 1)]},
    "ended": {"ended": [{"id": f"c{number}", "token": "1-a.1"} for number in range(MAX_HOST_CLAIMS + 1)]},
    "slots of a claim": {"claims": [claim(slots={f"CUSTOM_{number}": 1 for number in range(65)})]},
    "counted with NUL": {"claims": [claim(counted={"zone": "a\0"})]},
    "counted with a line's end": {"claims": [claim(counted={"label:rack": "a\r\n"})]},
    "counted by a zone with braces": {"claims": [claim(counted={"zone": "{a}"})]},
    "counted by many": {"claims": [claim(counted={f"label:l{number}": "x" for number in range(12)})]},
}


@pytest.fixture
async def large_api(clean_store: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of the API with the default limit of bodies, over an empty store."""
    async with client_of(Settings(redis_url=clean_store), is_new=True) as client:
        yield client


@pytest.mark.parametrize("name", TOO_MUCH)
async def test_a_request_over_a_cap_is_refused_and_names_the_field(api: httpx.AsyncClient, name: str) -> None:
    changed, field = TOO_MUCH[name]
    found = check_problem(await api.post("/v1/selections", json={**NEED, **changed}), 422, "invalid-request")
    assert found["detail"].startswith(f"{field}:"), found


async def test_a_payload_over_its_cap_is_refused(large_api: httpx.AsyncClient) -> None:
    answer = await large_api.post("/v1/selections", json={**VCPU, "payload": "x" * MAX_PAYLOAD_BYTES})
    found = check_problem(answer, 422, "invalid-request")
    assert found["detail"].startswith("payload has 16386 bytes as JSON: at most 16384 are allowed")


@pytest.mark.parametrize("name", BAD_REPORTS)
async def test_a_report_over_a_cap_is_refused(large_api: httpx.AsyncClient, name: str) -> None:
    answer = await large_api.put("/v1/hosts/h1/report", json={**REPORT, "external": {}, **BAD_REPORTS[name]})
    check_problem(answer, 422, "invalid-request")


async def test_a_label_value_with_braces_may_be_counted(large_api: httpx.AsyncClient) -> None:
    """Labels may have any printable value, so the claims that are counted under it must be reportable."""
    asked = {**REPORT, "claims": [claim(counted={"label:rack": "{a}"})]}
    assert (await large_api.put("/v1/hosts/h1/report", json=asked)).status_code == 200


async def test_a_request_is_smaller_than_a_report(large_api: httpx.AsyncClient) -> None:
    """The store keeps requests, so 1 MB of properties must not get in, and repeated names do not make room for it."""
    for body in ({**VCPU, "claim_ids": ["a" * 63] * 2100}, {**VCPU, "required": ["HW_CPU_X86_AVX2"] * 8000}):
        assert len(to_json(body)) > MAX_REQUEST_BYTES
        found = check_problem(await large_api.post("/v1/selections", json=body), 413, "body-too-large")
        assert str(MAX_REQUEST_BYTES) in found["detail"]
    labels = {f"l{number}": "x" * 63 for number in range(256)}  # 19 KB
    pools = {name: {**pool, "traits": [f"CUSTOM_{number:050}" for number in range(12)]} for name, pool in POOLS.items()}
    report = {**REPORT, "labels": labels, "pools": pools}
    assert len(to_json(report)) > MAX_REQUEST_BYTES
    assert (await large_api.put("/v1/hosts/h1/report", json=report)).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {**VCPU, "claim_ids": [1] * 340_000},
        {**VCPU, "any_of": [[1] * 340_000]},
        {**VCPU, **{f"f{number}": 1 for number in range(60_000)}},
        {"members": [{"name": "a"}] * 55_000},
    ],
    ids=["ids", "any_of", "unknown fields", "members"],
)
def test_a_megabyte_of_mistakes_is_refused_quickly(body: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared with reading the same JSON without checking it: usually it takes a third to 10 times as long.

    It took 2.5 s, 1 s, 0.35 s and 3.4 s of the loop, 20 to 200 times as long, as each mistake was described.
    """
    text, described, describe = to_json(body), list[int](), parsing.invalid
    monkeypatch.setattr(parsing, "invalid", lambda errors: described.append(len(errors)) or describe(errors))  # type: ignore[func-returns-value]

    def refuse() -> None:
        with pytest.raises(InvalidRequest) as refused:
            parse(text, Request)
        assert len(to_json(members(refused.value))) < 10_000

    assert cpu_s(refuse) < 40 * cpu_s(lambda: json.loads(text))
    assert max(described, default=0) <= 1000


def cpu_s(work: Callable[[], object]) -> float:
    """Return the processor time of some work in the best of four runs. The first one builds what later ones use."""

    def once() -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    return min(once() for _ in range(4))


def test_a_large_report_is_refused_before_its_inventories_are_built() -> None:
    """Building 16,384 of them took 0.17 s of the loop. What else is wrong with a report, parsing it describes."""
    classes = {f"CUSTOM_{'X' * 60}{number:02}": {"total": 1} for number in range(64)}
    report = {"pools": {f"p{number}": {"inventories": classes} for number in range(MAX_HOST_SLOTS // 64)}}
    check_report_size(to_json(report))
    with pytest.raises(InvalidRequest, match=f"has {MAX_HOST_SLOTS + 1} entries: at most {MAX_HOST_SLOTS}"):
        check_report_size(to_json({**report, "inventories": {"VCPU": {"total": 1}}}))
    for other in (to_json({"pools": [1] * 40_000}), to_json([1] * 40_000), b"{" * 70_000):
        check_report_size(other)


async def test_a_cell_has_a_limited_number_of_columns(large_api: httpx.AsyncClient) -> None:
    """Each slot is a column over all hosts, in every scheduler. A host that brings no new ones is always welcome."""
    await put_host(large_api, "h1")
    for host in range(MAX_CELL_SLOTS // MAX_HOST_SLOTS + 1):
        pools = {
            f"h{host}p{number}": {"inventories": {f"CUSTOM_{n}": {"total": 1} for n in range(60)}}
            for number in range(MAX_HOST_SLOTS // 60)
        }
        answer = await large_api.put(f"/v1/hosts/x{host}/report", json={**REPORT, "pools": pools})
        if answer.status_code != 200:
            break
        await large_api.post("/v1/selections", json={**NEED, "claim": False})  # catches up with the feed
    found = check_problem(answer, 409, "claim-state")
    assert f"of at most {MAX_CELL_SLOTS}" in found["detail"]
    await put_host(large_api, "h2")


async def test_claims_of_a_report_are_described_once_for_all_mistakes() -> None:
    text = to_json({**REPORT, "claims": [{"id": 1}] * 50_000})
    with pytest.raises(InvalidRequest, match=r"^claims\[0\]"):
        parse(text, ReportBody, "h1")


PATHS = ["/v1%2Fclaims", "/v1/claims%2fa", "/v1/hosts%5ch1", "/%2Fmetrics", "/v1/changes%0A", "/v1/hosts/%00"]


@pytest.mark.parametrize("path", PATHS)
async def test_an_encoded_slash_or_control_character_reaches_no_route(api: httpx.AsyncClient, path: str) -> None:
    """A proxy that guards `/v1/` does not see a path that begins with `/v1%2F`.

    `$` in the pattern of a route matches before a newline at the end: `/v1/changes%0A` was not counted as a stream.
    """
    found = check_problem(await api.get(path), 422, "invalid-request")
    assert "encoded slash" in found["detail"]


async def test_projects_with_quotas_differ_in_more_than_case(api: httpx.AsyncClient) -> None:
    limits = {"limits": {"claims": 1}}
    assert (await api.put("/v1/quotas/web", json=limits)).status_code == 201
    found = check_problem(await api.put("/v1/quotas/Web", json=limits), 409, "claim-state")
    assert "differs only in case from web" in found["detail"]
    assert (await api.put("/v1/quotas/web", json=limits)).status_code == 200
    assert (await api.delete("/v1/quotas/web")).status_code == 204
    assert (await api.put("/v1/quotas/Web", json=limits)).status_code == 201
