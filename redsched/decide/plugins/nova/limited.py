"""Holds classes written for Nova to the limit of work of a decision, although they do not know it."""

from collections.abc import Iterator
from typing import TypeVar

from redsched.decide.work_limit import check_work

Item = TypeVar("Item")


def check_asking() -> None:
    """Raise TooMuchWork if the limit in force is reached."""
    check_work("asking classes written for Nova")


class LimitedList(list[Item]):
    """A list through which a class goes only as far as the limit of work allows.

    `at` is where it is; None before and after.
    """

    at: Item | None = None

    def __iter__(self) -> Iterator[Item]:
        for one in super().__iter__():
            check_asking()
            self.at = one
            yield one
        self.at = None
