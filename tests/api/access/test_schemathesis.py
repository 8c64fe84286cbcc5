"""Schemathesis against a worker on a real store: no 5xx, and only responses that the OpenAPI document declares.

Half of the requests are an operator's, who may do all; the others come from each of the other callers.
"""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi import checks as openapi_checks

from redsched.store.embedded.server import PrivateServer
from tests.api.access.parts import TOKENS, bearer, token_file
from tests.api.parts import worker_over
from tests.support import fuzzing
from tests.support.openapi import openapi_document

EXAMPLES = 12
CHECKS = [*fuzzing.CHECKS, openapi_checks.ignored_auth]
OTHERS = [name for name in TOKENS if name not in ("operator", "expired")]
CALLERS = itertools.cycle(name for other in OTHERS for name in ("operator", other))

schema = fuzzing.schema_of(openapi_document())


@pytest.fixture(scope="module")
def base_url(server: PrivateServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a worker with authentication over a new store."""
    file = token_file(tmp_path_factory.mktemp("tokens"))
    with worker_over(server, REDSCHED_AUTH=os.fspath(file)) as url:
        yield url


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_every_answer_to_every_role_is_declared(case: "schemathesis.Case[Any]", base_url: str) -> None:
    case.call_and_validate(base_url=base_url, headers=dict(bearer(next(CALLERS))), checks=CHECKS)
