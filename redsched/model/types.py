"""Types of fields that a JSON body may give: names, classes, traits, amounts, and how pydantic reads them.

Their JSON schemas state what `redsched.model.validation` checks. Only reading JSON looks at them: a dataclass that is
constructed in Python checks itself.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticCustomError, PydanticOmit, core_schema
from typing_extensions import TypeAliasType

from redsched.model.limits import MAX_LEASE_S
from redsched.model.validation import (
    CUSTOM_PATTERN,
    DEVICE_PATTERN,
    HOST_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_AMOUNT,
    METADATA_KEY_PATTERN,
    METADATA_VALUE_PATTERN,
    NAME_PATTERN,
    OWNER_PATTERN,
    SHARED_POOL,
    STANDARD_CLASSES,
    STANDARD_TRAITS,
    check_slot,
    check_topology,
)

CONDITION_PATTERN = METADATA_VALUE_PATTERN.replace("{1,", "{0,")
"""The condition on a label: a value, or an operator with its operands; `redsched.model.validation` checks it."""

TOKEN_PATTERN = r"^[0-9]{1,16}-[A-Za-z0-9]{1,16}\.[0-9]{1,16}$"
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
Host = TypeAliasType("Host", Annotated[str, text_of(HOST_PATTERN)])
Device = TypeAliasType("Device", Annotated[str, text_of(DEVICE_PATTERN)])
Owner = TypeAliasType("Owner", Annotated[str, text_of(OWNER_PATTERN)])
LabelValue = TypeAliasType("LabelValue", Annotated[str, text_of(LABEL_VALUE_PATTERN)])
Condition = TypeAliasType("Condition", Annotated[str, text_of(CONDITION_PATTERN)])
MetadataKey = TypeAliasType("MetadataKey", Annotated[str, text_of(METADATA_KEY_PATTERN)])
MetadataValue = TypeAliasType("MetadataValue", Annotated[str, text_of(METADATA_VALUE_PATTERN)])
Topology = TypeAliasType("Topology", Annotated[str, text_of(TOPOLOGY_PATTERN)])
ResourceClass = TypeAliasType("ResourceClass", Annotated[str, _standard_or_custom(STANDARD_CLASSES)])
Slot = TypeAliasType("Slot", Annotated[str, _standard_or_custom(STANDARD_CLASSES, _POOL_SLOT_PATTERN)])
Trait = TypeAliasType("Trait", Annotated[str, _standard_or_custom(STANDARD_TRAITS)])

Amount = Annotated[int, whole_from(0)]
Need = Annotated[int, whole_from(1)]
LeaseS = Annotated[int, whole_from(1, MAX_LEASE_S)]

# Checked while JSON is read, for what no dataclass checks itself.
GivenName = Annotated[str, Field(pattern=NAME_PATTERN)]
GivenHost = Annotated[str, Field(pattern=HOST_PATTERN)]
GivenOwner = Annotated[str, Field(pattern=OWNER_PATTERN)]
GivenToken = Annotated[str, Field(pattern=TOKEN_PATTERN, examples=["1790000000000-9f3a12cd.4711"])]
GivenEpoch = Annotated[str, Field(pattern=r"^([0-9]{1,16}-[A-Za-z0-9]{1,16})?$")]
GivenEntryId = Annotated[str, Field(pattern=r"^([0-9]{1,19}(-[0-9]{1,19})?)?$")]
GivenSlot = Annotated[Slot, AfterValidator(check_slot)]
GivenTopology = Annotated[Topology, AfterValidator(check_topology)]
GivenCounted = Annotated[LabelValue, Field(pattern=LABEL_VALUE_PATTERN)]
GivenNeed = Annotated[int, Field(ge=1, le=MAX_AMOUNT)]
GivenLeaseS = Annotated[int, Field(ge=1, le=MAX_LEASE_S)]


class Body:
    """A dataclass that is read from JSON: no unknown fields, no type conversion, no NaN or Infinity."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class OrNull:
    """Metadata of a field that may be null in JSON, which means its `default`."""

    default: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of the field, or null."""
        nullable = core_schema.nullable_schema(handler(source))
        return core_schema.no_info_after_validator_function(
            lambda value: self.default if value is None else value, nullable
        )


def read_as(kind: Any) -> GetPydanticSchema:
    """Return metadata of a field that JSON gives as `kind`, a narrower type than Python's."""
    return GetPydanticSchema(lambda _source, handler: handler(kind))


class FromPath:
    """Metadata of a field that a body does not have, because the URL's path names it: the context of the parsing."""

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that takes the context, and refuses the field in a body."""
        taken = core_schema.with_info_plain_validator_function(_context)
        return core_schema.with_default_schema(taken, default=_ABSENT, validate_default=True)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> Any:
        """Leave the field out."""
        raise PydanticOmit


_ABSENT = object()


def _context(value: Any, info: ValidationInfo) -> Any:
    if value is not _ABSENT:
        raise PydanticCustomError("extra_forbidden", "Extra inputs are not permitted")
    return info.context
