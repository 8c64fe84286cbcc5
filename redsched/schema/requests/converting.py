"""How bodies become the words of `redsched.model`: each part makes itself, and an error says in which one it was."""

from abc import abstractmethod
from typing import Any

from redsched.errors import InvalidRequest
from redsched.schema.types import Strict


class Part(Strict):
    """A part of a body that is a dataclass of its own in the model."""

    @abstractmethod
    def made(self) -> Any:
        """The part in the words of the model. Raises InvalidRequest."""


_PLAIN = (str, int, float, frozenset, type(None))


def made(where: str, value: Any) -> Any:
    """What was given for the field `where`, in the words of the model. Raises InvalidRequest, which names the part."""
    if isinstance(value, _PLAIN):  # first, for the everyday request has nothing else
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
    """The fields that were given, in the words of the model; null is like not given. Raises InvalidRequest."""
    fields = body.__dict__
    names = body.model_fields_set - without if without else body.model_fields_set
    return {name: made(name, fields[name]) for name in names if fields[name] is not None}
