"""Schemathesis against a worker without authentication; a usual run plays it with tokens (tests/api/access)."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks as openapi_checks

from redsched.store.embedded.server import PrivateServer
from tests.api.parts import worker_over
from tests.support.openapi import openapi_document, with_short_waits

pytestmark = pytest.mark.long
EXAMPLES = 25
REFUSED = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "431", "5xx"]
"""How a request that breaks the schema may be refused: 413 and 431 if its body or its URL is also too long."""
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
schema = schemathesis.openapi.from_dict(
    without_tokens(openapi_document()),
    config=SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}),
).exclude(path="/v1/changes")


@schema.hook
def map_body(_context: Any, body: Any) -> Any:
    return with_short_waits(body)


@pytest.fixture(scope="module")
def base_url(server: PrivateServer) -> Iterator[str]:
    """Yield the URL of a worker over a new store, which does not wait for hosts to attest."""
    with worker_over(server) as url:
        yield url


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_declared(case: "schemathesis.Case[Any]", base_url: str) -> None:
    case.call_and_validate(base_url=base_url, checks=CHECKS)
