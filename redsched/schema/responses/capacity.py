"""The response of `redsched capacity --json`."""

from typing import Annotated

from pydantic import Field

from redsched.scheduler.observe.capacity import CapacityRow, ClassCapacity
from redsched.schema.answer import Answer


class ClassCapacityAnswer(Answer, shows=ClassCapacity):
    """The amounts of one class, in its unit."""

    total: Annotated[int, Field(description="What claims and external usage may use together.")]
    claimed: int
    external: Annotated[int, Field(description="Also what is reserved for requests that wait.")]
    free: Annotated[int, Field(description="Free on hosts that take claims.")]
    away: Annotated[int, Field(description="Free on hosts that take none.")]
    largest: Annotated[int, Field(description="The largest free amount in one place.")]
    largest_at: Annotated[str, Field(description="That place: a host, a host and its pool, or a shared pool.")]


class CapacityRowAnswer(Answer, shows=CapacityRow):
    """The amounts of a zone, aggregate or project; an empty name: of all, or of the hosts in none."""

    name: str
    classes: dict[str, ClassCapacityAnswer]
