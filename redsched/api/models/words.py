"""The types that models share: names, classes, traits, amounts. Their JSON schema says what `redsched.names` checks."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, WithJsonSchema
from typing_extensions import TypeAliasType

from redsched.model import MAX_LEASE_S
from redsched.names import (
    CUSTOM_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_AMOUNT,
    NAME_PATTERN,
    STANDARD_CLASSES,
    STANDARD_TRAITS,
)

TOKEN_PATTERN = r"^[0-9]{1,16}-[A-Za-z0-9]{1,16}\.[0-9]{1,16}$"


def _text(pattern: str, **more: Any) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, **more})


def _whole(low: int, high: int = MAX_AMOUNT) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


def _standard_or_custom(standard: frozenset[str]) -> WithJsonSchema:
    custom = {"type": "string", "pattern": CUSTOM_PATTERN}
    return WithJsonSchema({"anyOf": [{"type": "string", "enum": sorted(standard)}, custom]})


Name = TypeAliasType("Name", Annotated[str, _text(NAME_PATTERN)])
LabelValue = TypeAliasType("LabelValue", Annotated[str, _text(LABEL_VALUE_PATTERN)])
ResourceClass = TypeAliasType("ResourceClass", Annotated[str, _standard_or_custom(STANDARD_CLASSES)])
Trait = TypeAliasType("Trait", Annotated[str, _standard_or_custom(STANDARD_TRAITS)])
Token = TypeAliasType("Token", Annotated[str, _text(TOKEN_PATTERN, examples=["1790000000000-9f3a12cd.4711"])])
Epoch = Annotated[str, _text(r"^([0-9]{1,16}-[A-Za-z0-9]{1,16})?$")]

Amount = Annotated[int, _whole(0)]
Need = Annotated[int, _whole(1)]
LeaseS = Annotated[int, _whole(1, MAX_LEASE_S)]


class Strict(BaseModel):
    """What comes in: no unknown field, no conversion of types, no NaN or Infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class Answer(BaseModel):
    """What goes out. Documents the answer: routes render it from the scheduler's dataclasses directly."""

    model_config = ConfigDict(extra="forbid")
