"""The body of a shared pool. The bodies of aggregates, server groups and quotas are the model's dataclasses."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from redsched.model import SharedPool
from redsched.model.types import GivenName


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPoolBody(SharedPool):
    """A pool that several hosts of a cell may use."""

    cell: Annotated[GivenName, Field(description="The cell whose hosts may use the pool.")] = "c1"
