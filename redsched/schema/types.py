"""The types that models share: names, classes, traits, amounts.

Their JSON schemas state what `redsched.model.validation` checks.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from redsched.model import MAX_LEASE_S
from redsched.model.validation import (
    CUSTOM_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_AMOUNT,
    METADATA_KEY_PATTERN,
    METADATA_VALUE_PATTERN,
    NAME_PATTERN,
    SHARED_POOL,
    STANDARD_CLASSES,
    STANDARD_TRAITS,
    check_slot,
    check_topology,
)

TOKEN_PATTERN = r"^[0-9]{1,16}-[A-Za-z0-9]{1,16}\.[0-9]{1,16}$"
CONDITION_PATTERN = METADATA_VALUE_PATTERN.replace("{1,", "{0,")
"""The condition on a label: a value, or an operator with its operands; `redsched.model.validation` checks it."""

_NAME = NAME_PATTERN[1:-1]
TOPOLOGY_PATTERN = f"^(host|zone|label:{_NAME})$"
_POOL_SLOT_PATTERN = f"^({SHARED_POOL})?{_NAME}/[A-Z][A-Z0-9_]{{0,63}}$"


def text_of(pattern: str) -> WithJsonSchema:
    """Return the JSON schema of a string with this pattern."""
    return WithJsonSchema({"type": "string", "pattern": pattern})


def whole_from(low: int, high: int = MAX_AMOUNT) -> WithJsonSchema:
    """Return the JSON schema of an integer from `low` to `high`."""
    return WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


def _standard_or_custom(standard: frozenset[str], *patterns: str) -> WithJsonSchema:
    own: list[dict[str, Any]] = [{"type": "string", "pattern": pattern} for pattern in (CUSTOM_PATTERN, *patterns)]
    return WithJsonSchema({"anyOf": [{"type": "string", "enum": sorted(standard)}, *own]})


Name = TypeAliasType("Name", Annotated[str, text_of(NAME_PATTERN)])
LabelValue = TypeAliasType("LabelValue", Annotated[str, text_of(LABEL_VALUE_PATTERN)])
Condition = TypeAliasType("Condition", Annotated[str, text_of(CONDITION_PATTERN)])
MetadataKey = TypeAliasType("MetadataKey", Annotated[str, text_of(METADATA_KEY_PATTERN)])
MetadataValue = TypeAliasType("MetadataValue", Annotated[str, text_of(METADATA_VALUE_PATTERN)])
Topology = TypeAliasType("Topology", Annotated[str, text_of(TOPOLOGY_PATTERN)])
ResourceClass = TypeAliasType("ResourceClass", Annotated[str, _standard_or_custom(STANDARD_CLASSES)])
Slot = TypeAliasType("Slot", Annotated[str, _standard_or_custom(STANDARD_CLASSES, _POOL_SLOT_PATTERN)])
Trait = TypeAliasType("Trait", Annotated[str, _standard_or_custom(STANDARD_TRAITS)])

# Values in queries, journals and verbs: checked here, because no dataclass of `redsched.model` checks them.
GivenName = Annotated[str, Field(pattern=NAME_PATTERN)]
GivenSlot = Annotated[Slot, AfterValidator(check_slot)]
GivenTopology = Annotated[Topology, AfterValidator(check_topology)]
GivenNeed = Annotated[int, Field(ge=1, le=MAX_AMOUNT)]
GivenLeaseS = Annotated[int, Field(ge=1, le=MAX_LEASE_S)]
GivenToken = Annotated[str, Field(pattern=TOKEN_PATTERN, examples=["1790000000000-9f3a12cd.4711"])]
GivenEpoch = Annotated[str, Field(pattern=r"^([0-9]{1,16}-[A-Za-z0-9]{1,16})?$")]

Amounts = dict[str, int]
Amount = Annotated[int, whole_from(0)]
Need = Annotated[int, whole_from(1)]
LeaseS = Annotated[int, whole_from(1, MAX_LEASE_S)]


class Strict(BaseModel):
    """Base class of requests: no unknown fields, no type conversion, no NaN or Infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)
