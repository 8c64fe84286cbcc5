"""Parse JSON text into dataclasses and models, describe validation errors, and apply merge patches.

This does not use FastAPI, because the CLI needs it too. pydantic sets the fields of a dataclass of `redsched.model` and
has it check itself, so that a request needs no other Python code, and its JSON is described by its fields alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic_core import ValidationError

from redsched.errors import InvalidRequest
from redsched.model.record import adapter
from redsched.model.records.problems import FieldError, InvalidFacts
from redsched.model.unique_keys import DuplicateKey, check_unique_keys

Model = TypeVar("Model")

MAX_ERRORS = 20
MAX_SHOWN = 80
MAX_COUNTED = 1000
"""The most errors of one body that are described: each costs microseconds, and a body may have a million."""


def parse(text: bytes, model: type[Model], name: str = "") -> Model:
    """Parse JSON text as `model`. `name` is the object's name, if the path has it. Raises InvalidRequest."""
    try:
        found: Model = adapter(model).validate_json(text, context=name)
    except ValidationError as error:
        if error.error_count() > MAX_COUNTED:
            raise InvalidRequest(
                f"body: has {error.error_count()} errors, too many to describe: send a part of it to see what is wrong"
            ) from None
        raise invalid(error.errors(include_url=False)) from None
    refuse_duplicate_keys(text)
    return found


def refuse_duplicate_keys(text: bytes) -> None:
    """Raise InvalidRequest if an object of a valid JSON text has a key twice: which of them is meant is not known."""
    try:
        check_unique_keys(text)
    except DuplicateKey as error:
        raise InvalidRequest(f"body: {shown_text(error)}") from None


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


def invalid(errors: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """Return pydantic's errors as one InvalidRequest: the first as its detail, up to 20 as the fact `errors`.

    An InvalidRequest that a dataclass raised about all of its fields is returned unchanged.
    """
    if not errors[0]["loc"] and (own := _own(errors[0])):
        return own
    errors = _without_consequences(errors)
    found = [_field_error(error) for error in errors[:MAX_ERRORS]]
    more = f" (and {len(errors) - 1} more, see `errors`)" if len(errors) > 1 else ""
    return InvalidRequest(f"{found[0].field}: {found[0].message}{more}", InvalidFacts(errors=tuple(found)))


def shown_text(value: object) -> str:
    """Return a text that is safe to show in a response: truncated, and valid UTF-8."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _without_consequences(errors: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Leave out that a list is too short if one of its items is invalid: pydantic does not count that item."""
    within = {error["loc"][:end] for error in errors for end in range(len(error["loc"]))}
    return [error for error in errors if error["type"] != "too_short" or error["loc"] not in within]


def _field_error(error: Mapping[str, Any]) -> FieldError:
    where = _where(error["loc"]) or "body"
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return FieldError(where, "is not a known field: remove it or correct its name")
    if error["type"] == "json_invalid":
        return FieldError("body", f"is not valid JSON: {error['ctx']['error']}")
    if error["type"] == "missing":
        return FieldError(where, "is required: add it")
    if own := _own(error):
        return FieldError(where, own.detail)
    if error["type"] == "int_type" and isinstance(error["input"], float):
        return FieldError(where, _not_whole(error["input"]))
    return FieldError(where, f"{error['msg']}, not {shown_text(repr(error['input']))}")


def _not_whole(value: float) -> str:
    right = f"{value:.0f}, " if value.is_integer() else ""
    return f"must be a whole number, written without a fraction or an exponent: {right}not {value}"


def _own(error: Mapping[str, Any]) -> InvalidRequest | None:
    """Return the InvalidRequest that a check of redsched raised; None for one of pydantic's own errors."""
    found = error.get("ctx", {}).get("error")
    return found if isinstance(found, InvalidRequest) else None


def _where(location: Iterable[str | int]) -> str:
    """Return the path of a field, such as `groups[0].resources.VCPU`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{shown_text(part)}" for part in location)
    return "".join(parts).removeprefix(".")
