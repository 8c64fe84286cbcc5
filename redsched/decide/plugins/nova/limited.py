"""Holds classes written for Nova to the limit of work of a decision, although they do not know it."""

import sys
from collections.abc import Iterator
from traceback import walk_tb
from types import CodeType
from typing import TypeVar

from redsched.decide.work_limit import check_work

Item = TypeVar("Item")


def check_asking() -> None:
    """Raise TooMuchWork if the limit in force is reached."""
    check_work("asking classes written for Nova")


class LimitedList(list[Item]):
    """A list through which a class goes only as far as the limit of work allows."""

    _at: Item | None = None
    _left: tuple[CodeType, int] | None = None
    """The line at which a class stopped going through it before its end, by `break` or because an error was raised."""

    def __iter__(self) -> Iterator[Item]:
        self._left = None
        try:
            for one in super().__iter__():
                check_asking()
                self._at = one
                yield one
        except GeneratorExit:
            frame = sys._getframe(1)
            self._left = frame.f_code, frame.f_lineno
            raise
        self._at = None

    def at(self, error: BaseException) -> Item | None:
        """Return where a class was in it when an error was raised; None if it was not going through it."""
        if self._left is None:
            return self._at
        return self._at if self._left in [(one.f_code, line) for one, line in walk_tb(error.__traceback__)] else None
