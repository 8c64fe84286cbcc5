"""What schemathesis checks of each response, and the schema that it makes requests from."""

from typing import Any

import schemathesis
from schemathesis import checks
from schemathesis.config import SchemathesisConfig
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi import checks as openapi_checks

from tests.support.openapi import with_short_waits

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


def schema_of(document: dict[str, Any]) -> BaseSchema:
    """Return the schema of a document, but for the stream of changes, which never ends and has its own tests."""
    config = SchemathesisConfig.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}})
    schema = schemathesis.openapi.from_dict(document, config=config).exclude(path="/v1/changes")

    @schema.hook
    def map_body(_context: Any, body: Any) -> Any:
        return with_short_waits(body)

    @schema.hook
    def filter_query(_context: Any, query: Any) -> bool:
        """Leave out null for a list: in a URL it is the text `null`, a valid name."""
        return not query or "null" not in query.values()

    return schema
