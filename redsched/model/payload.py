"""The payload of a request: any JSON value that the caller gives to the hook that starts the work.

redsched does not look into it. It is a part of the request's text, so it is kept and restored with it.
"""

import json
from typing import Any

from redsched.errors import InvalidRequest
from redsched.model.json_codec import as_text

MAX_PAYLOAD_BYTES = 16_384
"""The largest payload, as JSON in UTF-8 without spaces."""
MAX_PAYLOAD_DEPTH = 64
"""The deepest nesting of lists and objects in a payload."""

_KEY = '"payload":'


def check_payload(payload: object) -> None:
    """Raise InvalidRequest unless a payload is a JSON value of an allowed size and depth."""
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"payload is not a JSON value ({error}): use objects with texts as keys, lists, texts, numbers, true and "
            "false"
        ) from error
    if size > MAX_PAYLOAD_BYTES:
        raise InvalidRequest(
            f"payload has {size} bytes as JSON: at most {MAX_PAYLOAD_BYTES} are allowed. Store what is larger "
            "elsewhere, and put its path or URL into the payload"
        )
    if _depth(payload) > MAX_PAYLOAD_DEPTH:
        raise InvalidRequest(f"payload is nested too deeply: at most {MAX_PAYLOAD_DEPTH} levels are allowed")


def payload_in(text: str | None) -> Any:
    """Return the payload in the canonical text of a request; None if it has none, or there is no such text."""
    return _fields(text).get("payload") if text is not None and _KEY in text else None


def without_payload(text: str) -> str:
    """Return the canonical text of a request without its payload, on which no decision depends."""
    fields = _fields(text) if _KEY in text else {}
    return as_text({name: value for name, value in fields.items() if name != "payload"}) if fields else text


def _fields(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # somebody has overwritten it
        return {}
    return found if isinstance(found, dict) else {}


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [part for one in level for part in _parts(one)]
    return depth


def _parts(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
