"""Convert bodies to the types of `redsched.model`: each part converts itself, and an error names its part."""

from abc import abstractmethod
from typing import Any

from redsched.errors import InvalidRequest
from redsched.schema.types import Strict


class Part(Strict):
    """A part of a body that has its own dataclass in the model."""

    @abstractmethod
    def made(self) -> Any:
        """Convert to the model's type. Raises InvalidRequest."""


_PLAIN = (str, int, float, frozenset, type(None))


def made(where: str, value: Any) -> Any:
    """Convert the value of the field `where` to the model's type. Raises InvalidRequest, which names the part."""
    if isinstance(value, _PLAIN):  # first, because most requests have nothing else
        return value
    if isinstance(value, dict):
        return {key: one if isinstance(one, _PLAIN) else made(f"{where}.{key}", one) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(
            [one if isinstance(one, _PLAIN) else made(f"{where}[{number}]", one) for number, one in enumerate(value)]
        )
    try:
        return value.made()
    except InvalidRequest as error:
        raise InvalidRequest(f"{where}: {error.detail}", error.facts) from None


def given(body: Strict, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the given fields, converted to the model's types; null counts as not given. Raises InvalidRequest."""
    fields = body.__dict__
    names = body.model_fields_set - without if without else body.model_fields_set
    return {name: made(name, fields[name]) for name in names if fields[name] is not None}
