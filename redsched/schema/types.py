"""The base class of queries, and of bodies that are no dataclass of `redsched.model`."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """Base class of requests: no unknown fields, no type conversion, no NaN or Infinity."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)
