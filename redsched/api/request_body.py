"""Read a JSON body: of a JSON content type, of limited size, and strictly valid for its model.

No body is larger than max_body_bytes. Those of selections and verbs have a lower limit, because they are kept.

All routes use this. FastAPI's own parsing is not used: it reads the whole body regardless of its size, and Python's
json accepts NaN, lone surrogates and nesting up to a RecursionError, all of which pydantic's parser reports as errors.
"""

import sys
from typing import Any

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from redsched.api.access.redact import BODY
from redsched.api.problems import BodyTooLarge
from redsched.errors import InvalidRequest
from redsched.model.limits import MAX_REQUEST_BYTES
from redsched.requests.parsing import Model, parse, refuse_duplicate_keys
from redsched.requests.reports import check_report_size
from redsched.serve.problems import UnsupportedMediaType


async def read(request: Request, model: type[Model], name: str = "") -> Model:
    """Return the body as `model`; `name` is the object's name from the path.

    Raises UnsupportedMediaType, BodyTooLarge or InvalidRequest.
    """
    return parse(await read_bytes(request, MAX_REQUEST_BYTES), model, name)


async def read_large(request: Request, model: type[Model], name: str = "") -> Model:
    """Return the body of an object that may be as large as max_body_bytes: a report or a declaration."""
    return parse(await read_bytes(request), model, name)


async def read_report(request: Request, model: type[Model], host: str) -> Model:
    """Return the body of a report of the host. Raises as `read` does."""
    text = await read_bytes(request)
    check_report_size(text)
    return parse(text, model, host)


async def read_if_any(request: Request, model: type[Model]) -> Model:
    """Return the body as `model`, or the model's defaults if there is no body. Raises as `read` does."""
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        return model()
    return await read(request, model)


async def read_object(request: Request) -> dict[str, Any]:
    """Return the body as any JSON object. Raises as `read` does."""
    return object_in(await read_bytes(request))


def object_in(text: bytes) -> dict[str, Any]:
    """Return the JSON object that a body is. Raises InvalidRequest."""
    try:
        found = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidRequest(f"body: is not valid JSON: {error}") from None
    refuse_duplicate_keys(text)
    if not isinstance(found, dict):
        raise InvalidRequest("body: is not a JSON object: send one, such as {}")
    return found


async def read_bytes(request: Request, most: int = sys.maxsize) -> bytes:
    """Return the raw body, of `most` bytes if max_body_bytes is not lower.

    Raises UnsupportedMediaType, or BodyTooLarge without reading beyond the limit.
    """
    _check_media_type(request.headers.get("content-type", ""))
    limit = min(request.app.state.settings.max_body_bytes, most)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit, most)
    chunks, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise _too_large(limit, most)
            chunks.append(chunk)
    except ClientDisconnect:
        # Not a fault: nobody gets this response, and nothing is logged.
        raise InvalidRequest("the client disconnected before it had sent the whole body") from None
    request.scope[BODY] = body = b"".join(chunks)
    return body


def _check_media_type(declared: str) -> None:
    media_type = declared.partition(";")[0].strip().lower()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        raise UnsupportedMediaType(
            f"the body is declared as {declared[:80]!r}: send JSON with the header Content-Type: application/json"
        )


def _too_large(limit: int, most: int) -> BodyTooLarge:
    step = "send less" if limit == most else "send less, or raise REDSCHED_MAX_BODY_BYTES"
    return BodyTooLarge(f"the body is larger than {limit} bytes: {step}")
