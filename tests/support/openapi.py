"""The OpenAPI document of the app, made once for each test process: making it takes 0.2 s."""

from functools import cache
from typing import Any

from redsched.api.app import create_app
from redsched.settings import Settings


@cache
def openapi_document() -> dict[str, Any]:
    """Return the document that `GET /openapi.json` answers with. Do not change it."""
    return create_app(Settings()).openapi()
