"""Schemathesis against a worker without authentication; a usual run plays it with tokens (tests/api/access)."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from redsched.store.embedded.server import PrivateServer
from tests.api.parts import worker_over
from tests.support import fuzzing
from tests.support.openapi import openapi_document

pytestmark = pytest.mark.long
EXAMPLES = 25


def without_tokens(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document for an API without authentication, which this one is: tests/api/access tries the other."""
    paths = {
        path: {method: {**operation, "security": []} for method, operation in item.items()}
        for path, item in document["paths"].items()
    }
    return {**document, "paths": paths}


schema = fuzzing.schema_of(without_tokens(openapi_document()))


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
    case.call_and_validate(base_url=base_url, checks=fuzzing.CHECKS)
