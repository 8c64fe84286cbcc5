"""The library of functions that people call with redis-cli, composed of the files of redsched/lua/functions.

A server names a library by its first line, and has one of each name. So the version is in its text: a number that grows
whenever the functions change. Comments are left out, so that only code makes a difference.
"""

import re
from dataclasses import dataclass
from functools import cache

from redsched.store.client.scripts import expand_all, functions

NAME = "redsched"
VERSION = 7
"""Raise it with every change of the functions: a test has the digest of this version's text."""
LAST = "help"
"""The function that lists those before it."""

_VERSION = re.compile(rf"\A#!lua name={NAME}\nlocal VERSION = (\d+)\n")
_COMMENT = re.compile(r"^ *--.*\n| +--.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Library:
    """A composed library: its text as sent to the server."""

    version: int
    text: str


@cache
def library() -> Library:
    """Return the library of this release."""
    names = sorted(functions(), key=lambda name: (name == LAST, name))
    code = _COMMENT.sub("", expand_all(functions()[name] for name in names))
    return Library(VERSION, f"#!lua name={NAME}\nlocal VERSION = {VERSION}\n{code}")


def version_of(text: str) -> int | None:
    """Return the version in the text of a library; None if redsched has not made it."""
    found = _VERSION.match(text)
    return int(found[1]) if found else None
