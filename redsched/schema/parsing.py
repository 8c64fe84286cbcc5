"""Parse JSON text into models, describe validation errors, and apply merge patches. No FastAPI: the CLI uses it too."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from redsched.errors import InvalidRequest

Model = TypeVar("Model", bound=BaseModel)

MAX_ERRORS = 20
MAX_SHOWN = 80


def parse(text: bytes, model: type[Model]) -> Model:
    """Parse JSON text as `model`. Raises InvalidRequest."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False)) from None


def merged(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396, section 2): members of `patch` replace those of `target`, null removes them."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def invalid(errors: Iterable[Mapping[str, Any]]) -> InvalidRequest:
    """Return pydantic's errors as one InvalidRequest: the first as its detail, up to 20 as the fact `errors`."""
    found = [_field_error(error) for error in errors]
    more = f" (and {len(found) - 1} more, see `errors`)" if len(found) > 1 else ""
    return InvalidRequest(f"{found[0]['field']}: {found[0]['message']}{more}", {"errors": found[:MAX_ERRORS]})


def shown_text(value: object) -> str:
    """Return a text that is safe to show in a response: truncated, and valid UTF-8."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _field_error(error: Mapping[str, Any]) -> dict[str, str]:
    where = _where(error["loc"]) or "body"
    if error["type"] == "extra_forbidden":
        return {"field": where, "message": "is not a known field: remove it or correct its name"}
    if error["type"] == "json_invalid":
        return {"field": "body", "message": f"is not valid JSON: {error['ctx']['error']}"}
    if error["type"] == "missing":
        return {"field": where, "message": "is required: add it"}
    if isinstance(own := error.get("ctx", {}).get("error"), InvalidRequest):
        return {"field": where, "message": own.detail}
    return {"field": where, "message": f"{error['msg']}, not {shown_text(repr(error['input']))}"}


def _where(location: Iterable[str | int]) -> str:
    """Return the path of a field, such as `groups[0].resources.VCPU`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{shown_text(part)}" for part in location)
    return "".join(parts).removeprefix(".")
