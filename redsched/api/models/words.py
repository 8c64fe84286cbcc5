"""The types that models share: names, classes, traits, amounts. Their JSON schema says what `redsched.names` checks."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from redsched.model import MAX_LEASE_S
from redsched.names import (
    CUSTOM_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_AMOUNT,
    NAME_PATTERN,
    STANDARD_CLASSES,
    STANDARD_TRAITS,
    check_class,
)

TOKEN_PATTERN = r"^[0-9]{1,16}-[A-Za-z0-9]{1,16}\.[0-9]{1,16}$"


def _text(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


def _whole(low: int, high: int = MAX_AMOUNT) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


def _standard_or_custom(standard: frozenset[str]) -> WithJsonSchema:
    custom = {"type": "string", "pattern": CUSTOM_PATTERN}
    return WithJsonSchema({"anyOf": [{"type": "string", "enum": sorted(standard)}, custom]})


Name = TypeAliasType("Name", Annotated[str, _text(NAME_PATTERN)])
LabelValue = TypeAliasType("LabelValue", Annotated[str, _text(LABEL_VALUE_PATTERN)])
ResourceClass = TypeAliasType("ResourceClass", Annotated[str, _standard_or_custom(STANDARD_CLASSES)])
Trait = TypeAliasType("Trait", Annotated[str, _standard_or_custom(STANDARD_TRAITS)])

# Checked here, because no dataclass of `redsched.model` does: what queries, journals and verbs carry.
GivenName = Annotated[str, Field(pattern=NAME_PATTERN)]
GivenClass = Annotated[ResourceClass, AfterValidator(check_class)]
GivenNeed = Annotated[int, Field(ge=1, le=MAX_AMOUNT)]
GivenLeaseS = Annotated[int, Field(ge=1, le=MAX_LEASE_S)]
GivenToken = Annotated[str, Field(pattern=TOKEN_PATTERN, examples=["1790000000000-9f3a12cd.4711"])]
GivenEpoch = Annotated[str, Field(pattern=r"^([0-9]{1,16}-[A-Za-z0-9]{1,16})?$")]

Amount = Annotated[int, _whole(0)]
Need = Annotated[int, _whole(1)]
LeaseS = Annotated[int, _whole(1, MAX_LEASE_S)]


class Strict(BaseModel):
    """What comes in: no unknown field, no conversion of types, no NaN or Infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)


class Answer(BaseModel):
    """What goes out. Documents the answer: routes render it from the scheduler's dataclasses directly."""

    model_config = ConfigDict(extra="forbid")
