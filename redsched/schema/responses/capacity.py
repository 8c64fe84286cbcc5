"""Responses about capacity."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from redsched.scheduler import CapacityBy, CapacityRow, ClassCapacity
from redsched.schema.answer import Answer


class ClassCapacityAnswer(Answer, shows=ClassCapacity):
    """The amounts of one class, in its unit."""

    total: Annotated[int, Field(description="What claims and external usage may use together.")]
    claimed: int
    external: int
    kept: Annotated[int, Field(description="Free, and kept for requests that wait.")]
    free: Annotated[int, Field(description="What else is free on hosts that take claims.")]
    away: Annotated[int, Field(description="Free on hosts that take none.")]
    largest: Annotated[
        int, Field(description="The most that one claim can take in one place now: at most its max_unit.")
    ]
    largest_at: Annotated[str, Field(description="That place: a host, a host and its pool, or a shared pool.")]


class CapacityRowAnswer(Answer, shows=CapacityRow):
    """The amounts of a zone, aggregate, project or consumer; an empty name: of all, or of what is in none."""

    name: str
    classes: dict[str, ClassCapacityAnswer]


class CapacityAnswer(Answer):
    """Amounts by class, with a row for each zone, aggregate, project or consumer.

    Without `by`: one row, or for tenants one for each of their projects.
    """

    by: CapacityBy | None
    capacity: list[CapacityRowAnswer]

    @classmethod
    def of_rows(cls, by: CapacityBy | None, rows: Iterable[CapacityRow]) -> dict[str, Any]:
        """Return the response for rows."""
        return {"by": by, "capacity": [CapacityRowAnswer.of(row) for row in rows]}
