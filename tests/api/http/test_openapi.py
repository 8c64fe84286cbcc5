"""The OpenAPI document: it has every route, its references resolve, and its examples work."""

import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from pydantic_core import to_json

from redsched.api import examples
from redsched.api.former_agent_calls import FORMER
from redsched.api.openapi import models
from redsched.model.record import adapter
from tests.api.parts import check_problem, put_host
from tests.support.openapi import openapi_document

DOCUMENT = openapi_document()
MODELS = {model.__name__: model for model, _ in models()}
OPERATIONS = [(path, method) for path, item in DOCUMENT["paths"].items() for method in item]
EXAMPLES = [
    (path, method, name, media_type, example["value"])
    for path, method in OPERATIONS
    for media_type, content in DOCUMENT["paths"][path][method].get("requestBody", {}).get("content", {}).items()
    for name, example in content.get("examples", {}).items()
]


def test_every_operation_declares_the_errors_that_do_not_depend_on_its_route() -> None:
    """Of its connection, and, where it needs a token, of its caller."""
    for path, method in OPERATIONS:
        operation = DOCUMENT["paths"][path][method]
        declared = operation["responses"].keys()
        assert declared >= {"400", "408", "431"}, (method, path)
        assert bool(operation["security"]) == ("429" in declared), (method, path)
        assert not operation["security"] or declared >= {"401", "403"}, (method, path)


def test_the_document_has_every_route_of_the_contract() -> None:
    """It has no other route."""
    assert {f"{method.upper()} {path}" for path, method in OPERATIONS} == {
        "POST /v1/selections",
        "POST /v1/explain",
        "GET /v1/claims",
        "DELETE /v1/claims",
        "POST /v1/claims/renew",
        "POST /v1/claims/shelve",
        "POST /v1/claims/unshelve",
        "GET /v1/claims/{claim_id}",
        "GET /v1/claims/{claim_id}/events",
        "DELETE /v1/claims/{claim_id}",
        "POST /v1/claims/{claim_id}/confirm",
        "POST /v1/claims/{claim_id}/renew",
        "POST /v1/claims/{claim_id}/fail",
        "POST /v1/claims/{claim_id}/move",
        "POST /v1/claims/{claim_id}/resize",
        "POST /v1/claims/{claim_id}/shelve",
        "POST /v1/claims/{claim_id}/unshelve",
        "GET /v1/hosts",
        "GET /v1/hosts/{host}",
        "DELETE /v1/hosts/{host}",
        "GET /v1/hosts/{host}/drain",
        "POST /v1/hosts/{host}/drain",
        "POST /v1/hosts/{host}/enable",
        "POST /v1/hosts/{host}/disable",
        "POST /v1/hosts/{host}/write-off",
        "PUT /v1/hosts/{host}/report",
        "PATCH /v1/hosts/{host}/report",
        "POST /v1/hosts/{host}/heartbeat",
        "GET /v1/hosts/{host}/inbox",
        "GET /v1/agent",
        "POST /v1/agent/calls/{name}",
        "POST /v1/agent/heartbeats",
        "POST /v1/agent/inboxes",
        "POST /v1/agent/claim-ids",
        "POST /v1/agent/claims",
        "PUT /v1/agent/hosts/{host}/report",
        "POST /v1/agent/hosts/{host}/attest",
        "GET /v1/agent/hosts/{host}/devices",
        "POST /v1/agent/hosts/{host}/raise-epoch",
        "POST /v1/agent/hosts/{host}/texts/missing",
        "GET /v1/agent/hosts/{host}/claims/{claim_id}/texts",
        "PUT /v1/agent/hosts/{host}/claims/{claim_id}/texts",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/accept",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/confirm",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/renew",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/fail",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/work-ended",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/stop-failed",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/gone",
        "POST /v1/agent/hosts/{host}/claims/{claim_id}/resized",
        "PUT /v1/agent/hosts/{host}/claims/{claim_id}/local",
        "GET /v1/aggregates",
        "GET /v1/aggregates/{name}",
        "PUT /v1/aggregates/{name}",
        "DELETE /v1/aggregates/{name}",
        "GET /v1/server-groups",
        "GET /v1/server-groups/{name}",
        "PUT /v1/server-groups/{name}",
        "DELETE /v1/server-groups/{name}",
        "GET /v1/shared-pools",
        "GET /v1/shared-pools/{name}",
        "PUT /v1/shared-pools/{name}",
        "DELETE /v1/shared-pools/{name}",
        "GET /v1/quotas",
        "GET /v1/quotas/{project}",
        "PUT /v1/quotas/{project}",
        "DELETE /v1/quotas/{project}",
        "POST /v1/plans/capacity",
        "POST /v1/plans/drain",
        "POST /v1/plans/without",
        "POST /v1/plans/with",
        "POST /v1/plans/rebalance",
        "POST /v1/plans/rebalance/apply",
        "GET /v1/status",
        "GET /v1/usage",
        "GET /v1/capacity",
        "GET /v1/changes",
        "GET /v1/events",
        "GET /v1",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
    }


def test_operations_are_named_and_grouped_for_generated_clients() -> None:
    """Each operation id is unique and in snake case; every tag is described."""
    operations = [DOCUMENT["paths"][path][method] for path, method in OPERATIONS]
    ids = [one["operationId"] for one in operations]
    assert len(set(ids)) == len(ids)
    assert [one for one in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)*", one)] == []
    assert {"drain_host", "renew_claim", "renew_claims", "list_hosts", "write_off_host"} <= set(ids)
    assert {tag for one in operations for tag in one["tags"]} == {one["name"] for one in DOCUMENT["tags"]}


def test_the_problem_types_are_an_enum_of_those_that_are_documented() -> None:
    documented = set(re.findall(r"^\| `(/problems/[a-z-]+)`", Path("docs/rest.md").read_text(), re.MULTILINE))
    assert set(DOCUMENT["components"]["schemas"]["ProblemType"]["enum"]) == documented
    assert DOCUMENT["components"]["schemas"]["QuotaProblem"]["properties"]["type"]["$ref"].endswith("/ProblemType")


@pytest.mark.parametrize("path", ["/v1/selections", "/v1/claims/{claim_id}/move", "/v1/claims/{claim_id}/resize"])
def test_a_claim_may_be_refused_by_a_quota(path: str) -> None:
    assert "quota-exceeded" in DOCUMENT["paths"][path]["post"]["responses"]["403"]["description"]


@pytest.mark.parametrize("model", [name for name in DOCUMENT["components"]["schemas"] if name.endswith("Body")])
def test_the_example_of_a_body_is_of_its_model(model: str) -> None:
    for example in DOCUMENT["components"]["schemas"][model].get("examples", []):
        adapter(MODELS[model]).validate_json(to_json(example))


def of_json(path: str, method: str) -> Iterator[dict[str, Any]]:
    """Yield the request bodies of an operation, and its JSON responses that are not problems."""
    operation = DOCUMENT["paths"][path][method]
    yield from operation.get("requestBody", {}).get("content", {}).values()
    for status, answer in operation["responses"].items():
        if status < "300" and "application/json" in answer.get("content", {}):
            yield answer["content"]["application/json"]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_body_and_answer_has_examples_that_its_schema_allows(path: str, method: str) -> None:
    for content in of_json(path, method):
        found = [content["example"]] if "example" in content else [one["value"] for one in content["examples"].values()]
        assert found, content
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        for example in found:
            jsonschema_rs.Draft202012Validator(schema).validate(example)


def test_there_is_no_example_of_an_answer_that_no_route_gives() -> None:
    names = {content["schema"].get("$ref", "").rpartition("/")[2] for one in OPERATIONS for content in of_json(*one)}
    assert examples.ANSWERS.keys() <= names


def test_the_routes_of_earlier_agents_are_deprecated_and_no_others() -> None:
    found = {(method.upper(), path) for path, method in OPERATIONS if DOCUMENT["paths"][path][method].get("deprecated")}
    assert found == {(one.method, one.path) for one in FORMER}


async def test_v1_says_what_it_is(api: httpx.AsyncClient) -> None:
    found = (await api.get("/v1")).json()
    assert (found["name"], found["version"]) == ("redsched", version("redsched"))
    assert (await api.get(found["openapi"])).json()["info"]["version"] == found["version"]
    assert (await api.get(found["docs"])).status_code == 200
    check_problem(await api.get("/v1?a=b"), 422, "invalid-request")


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_problem_is_declared_as_one(path: str, method: str) -> None:
    """Every 4xx and 5xx response has the media type of problems, and only that."""
    for status, answer in DOCUMENT["paths"][path][method]["responses"].items():
        if status >= "400":
            assert list(answer["content"]) == ["application/problem+json"], (path, method, status)


def test_every_reference_leads_somewhere() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            for one in value.values():
                yield from references(one)
        elif isinstance(value, list):
            for one in value:
                yield from references(one)

    missing = set(references(DOCUMENT)) - {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert missing == set()


@pytest.mark.parametrize(("path", "method", "name", "media_type", "example"), EXAMPLES)
async def test_every_example_works(
    empty_api: httpx.AsyncClient, path: str, method: str, name: str, media_type: str, example: Any
) -> None:
    """It is sent to an API with a host that has reported the example of a report."""
    report = next(value for of, how, _, _, value in EXAMPLES if of == "/v1/hosts/{host}/report" and how == "put")
    await put_host(empty_api, "h17", **{"lease_s": 3600, **report})
    own = name if path.startswith("/v1/agent") else "licensed"
    target = path.replace("{host}", "h17").replace("{name}", own).replace("{project}", "web")
    answer = await empty_api.request(method, target, json=example, headers={"Content-Type": media_type})
    assert answer.is_success, answer.text


async def test_the_document_is_written_once(api: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may ask for it, and writing it takes 15 ms."""
    first = await api.get("/openapi.json")
    monkeypatch.setattr(json, "dumps", None)
    again = await api.get("/openapi.json")
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["content-type"] == "application/json"
