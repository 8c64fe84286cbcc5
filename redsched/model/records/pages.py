"""Pages of lists."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. Pass `next` as `after` to get the next page; None on the last page."""

    items: tuple[T, ...]
    next: str | None = None
