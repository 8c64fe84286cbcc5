"""The classes of a fleet, for errors about one that nobody knows."""

import functools
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from io import StringIO
from typing import Any

from redsched.cli.fleet import ANYWHERE, Where, with_fleet
from redsched.errors import InvalidRequest
from redsched.model.gpus import GPU
from redsched.model.nearest_names import those_there
from redsched.model.validation import check_class
from redsched.model.workload import GPU_SHARES


class UnknownClass(InvalidRequest):
    """A name is no resource class. The detail is that of `check_class`."""

    def __init__(self, name: str) -> None:
        self.name = name
        detail = ""
        try:
            check_class(name)
        except InvalidRequest as error:
            detail = error.detail
        super().__init__(detail)


def naming_classes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command name the classes of its fleet if it raises UnknownClass, if the fleet can be reached."""

    @functools.wraps(command)
    def named(**given: Any) -> Any:
        try:
            return command(**given)
        except UnknownClass as error:
            if classes := _classes(given.get("where", ANYWHERE)):
                classes += [GPU] * (GPU_SHARES in classes)
                raise InvalidRequest(f"unknown resource class {those_there(error.name, classes)}") from None
            raise

    return named


def _classes(where: Where) -> list[str]:
    """Return the classes of the hosts and shared pools; [] if nobody can be asked, or the caller may not know."""
    found: list[str] = []
    with suppress(Exception, SystemExit), redirect_stderr(StringIO()):
        for row in with_fleet(where, lambda fleet: fleet.capacity(), read_only=True):
            found += row.classes
    return found
