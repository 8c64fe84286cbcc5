"""The OpenAPI document of the app, made once for each test process: making it takes 0.2 s."""

from functools import cache
from typing import Any

from redsched.api.app import create_app
from redsched.settings import Settings


@cache
def openapi_document() -> dict[str, Any]:
    """Return the document that `GET /openapi.json` answers with. Do not change it."""
    return create_app(Settings()).openapi()


def with_short_waits(body: Any) -> Any:
    """Return a generated body with timeouts of one second at most, so that no test waits long."""
    if not isinstance(body, dict):
        return body
    names = ("queue_timeout_s", "confirm_timeout_s", "timeout_s")
    waits = [name for name in names if isinstance(body.get(name), int | float)]
    shorter = {name: min(body[name], 1) for name in waits}
    return {**body, **shorter} | ({"confirm_timeout_s": 1} if body.get("until") == "active" else {})
