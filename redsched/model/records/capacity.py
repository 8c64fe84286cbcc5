"""Capacity: how much there is of each class, how much is claimed and free, and the most that one claim can take."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from redsched.errors import InvalidRequest


class CapacityBy(StrEnum):
    """What amounts are summed by, besides their class."""

    ZONE = "zone"
    AGGREGATE = "aggregate"
    PROJECT = "project"
    CONSUMER = "consumer"


def capacity_by(text: str | None) -> CapacityBy | None:
    """Return what a name says to sum by. Raises InvalidRequest."""
    if text and text not in set(CapacityBy):
        raise InvalidRequest(f"by {text[:80]!r} is not a key to sum by: use one of {', '.join(CapacityBy)}")
    return CapacityBy(text) if text else None


@dataclass(frozen=True, slots=True)
class ClassCapacity:
    """The amounts of one class, in its unit."""

    total: Annotated[int, Field(description="What claims and external usage may use together.")] = 0
    claimed: int = 0
    external: int = 0
    free: Annotated[int, Field(description="What is free on hosts that take claims, and not kept.")] = 0
    away: Annotated[
        int, Field(description="Free on hosts that take none: down, not attested, disabled or draining.")
    ] = 0
    largest: Annotated[
        int, Field(description="The most that one claim can take in one place now: at most its max_unit.")
    ] = 0
    largest_at: Annotated[str, Field(description="That place: a host, a host and its pool, or a shared pool.")] = ""
    kept: Annotated[int, Field(description="Free, and kept for requests that wait.")] = 0

    def __add__(self, other: "ClassCapacity") -> "ClassCapacity":
        top = other if other.largest > self.largest else self
        return ClassCapacity(
            self.total + other.total,
            self.claimed + other.claimed,
            self.external + other.external,
            self.free + other.free,
            self.away + other.away,
            top.largest,
            top.largest_at,
            self.kept + other.kept,
        )


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """The amounts of a zone, aggregate, project or consumer; an empty name: of all, or of what is in none.

    Projects and consumers have no capacity of their own: `total` is that of all hosts, and only `claimed` is theirs.
    """

    name: str
    classes: Mapping[str, ClassCapacity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Amounts by class, with a row for each zone, aggregate, project or consumer.

    Without `by`: one row, or for tenants one for each of their projects.
    """

    by: CapacityBy | None
    capacity: tuple[CapacityRow, ...]
