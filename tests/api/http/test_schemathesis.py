"""Schemathesis against a worker on a real store: no 5xx, and only responses that the OpenAPI document declares."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from redsched.server.supervisor import Workers
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from tests.api.parts import declare_new
from tests.support.openapi import openapi_document

EXAMPLES = 25
CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.negative_data_rejection,
    openapi_checks.unsupported_method,
]


def without_tokens(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document for an API without authentication, which this one is: tests/api/access tries the other."""
    paths = {
        path: {method: {**operation, "security": []} for method, operation in item.items()}
        for path, item in document["paths"].items()
    }
    return {**document, "paths": paths}


# The stream of changes never ends; test_changes.py covers it.
schema = schemathesis.openapi.from_dict(without_tokens(openapi_document())).exclude(path="/v1/changes")


@schema.hook
def map_body(_context: Any, body: Any) -> Any:
    """Limit the timeouts of a request to one second, so that no test waits long."""
    if not isinstance(body, dict):
        return body
    waits = [name for name in ("queue_timeout_s", "confirm_timeout_s", "timeout_s") if isinstance(body.get(name), int)]
    shorter = {name: min(body[name], 1) for name in waits}
    return {**body, **shorter} | ({"confirm_timeout_s": 1} if body.get("until") == "active" else {})


@pytest.fixture(scope="module")
def base_url(server: PrivateServer) -> Iterator[str]:
    """Yield the URL of a worker over a new store, which does not wait for hosts to attest."""
    with redis.Redis(unix_socket_path=str(server.socket), protocol=2) as client:
        client.flushall()
    asyncio.run(declare_new(Settings(redis_url=server.url)))
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": server.url})
        yield workers.url


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_declared(case: "schemathesis.Case[Any]", base_url: str) -> None:
    case.call_and_validate(base_url=base_url, checks=CHECKS)
