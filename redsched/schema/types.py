"""The types of values in queries, journals and verbs that no dataclass of `redsched.model` checks."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from redsched.model import MAX_LEASE_S
from redsched.model.claims import LOG_PATH
from redsched.model.types import LabelValue, Slot, Topology
from redsched.model.validation import LABEL_VALUE_PATTERN, MAX_AMOUNT, check_slot, check_topology

GivenSlot = Annotated[Slot, AfterValidator(check_slot)]
GivenTopology = Annotated[Topology, AfterValidator(check_topology)]
GivenCounted = Annotated[LabelValue, Field(pattern=LABEL_VALUE_PATTERN)]
GivenNeed = Annotated[int, Field(ge=1, le=MAX_AMOUNT)]
GivenLeaseS = Annotated[int, Field(ge=1, le=MAX_LEASE_S)]
GivenLogPath = Annotated[str, Field(pattern=rf"^({LOG_PATH})?$")]
GivenEpoch = Annotated[str, Field(pattern=r"^([0-9]{1,16}-[A-Za-z0-9]{1,16})?$")]


class Strict(BaseModel):
    """Base class of requests: no unknown fields, no type conversion, no NaN or Infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)
