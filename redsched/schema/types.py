"""The types of values in queries, journals and verbs, which no dataclass of `redsched.model` checks."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from redsched.model import MAX_LEASE_S
from redsched.model.types import Slot, Topology
from redsched.model.validation import MAX_AMOUNT, NAME_PATTERN, check_slot, check_topology

TOKEN_PATTERN = r"^[0-9]{1,16}-[A-Za-z0-9]{1,16}\.[0-9]{1,16}$"

GivenName = Annotated[str, Field(pattern=NAME_PATTERN)]
GivenSlot = Annotated[Slot, AfterValidator(check_slot)]
GivenTopology = Annotated[Topology, AfterValidator(check_topology)]
GivenNeed = Annotated[int, Field(ge=1, le=MAX_AMOUNT)]
GivenLeaseS = Annotated[int, Field(ge=1, le=MAX_LEASE_S)]
GivenToken = Annotated[str, Field(pattern=TOKEN_PATTERN, examples=["1790000000000-9f3a12cd.4711"])]
GivenEpoch = Annotated[str, Field(pattern=r"^([0-9]{1,16}-[A-Za-z0-9]{1,16})?$")]


class Strict(BaseModel):
    """Base class of requests: no unknown fields, no type conversion, no NaN or Infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)
