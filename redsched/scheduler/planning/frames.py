"""What a scheduler and its planner send each other: pickled objects, each after its length.

The pipe is private to the two processes, of which one has started the other from the same installation.
"""

import pickle
import struct
from dataclasses import dataclass, replace
from typing import Any

from redsched.model import Request
from redsched.settings import Settings

LENGTH = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Setup:
    """What a planner gets first: the store, and the settings to decide by."""

    url: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class DecideJob:
    """Decide on a request in one cell, in `limit_s` of work."""

    cell: str
    request: Request
    limit_s: float


@dataclass(frozen=True, slots=True)
class ExplainJob:
    """Explain a request over all cells, with every check of the named hosts."""

    request: Request
    hosts: tuple[str, ...]


Job = DecideJob | ExplainJob


def renewed(request: Request) -> Request:
    """Return a request as its constructor makes it: pickling leaves out what it caches."""
    members = tuple(replace(one, request=replace(one.request)) for one in request.members)
    return replace(request, members=members)


def packed(one: object) -> bytes:
    """Return an object as it is sent."""
    data = pickle.dumps(one)
    return LENGTH.pack(len(data)) + data


def unpacked(data: bytes) -> Any:
    """Return the object that was sent."""
    return pickle.loads(data)
