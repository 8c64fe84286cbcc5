"""The commands that a script calls, taken from its text. Servers check each of them against the user's permissions."""

import re
from functools import cache

from redsched.store.client.scripts import load_all

_COMMENT = re.compile(r"--.*")
_CALLED = re.compile(r"\b(?:redis\.p?call|in_chunks|remove_members)\('([A-Z]+)'")
"""A call that names its command. in_chunks.lua and remove_members.lua pass on the command that they are given."""
_LOOK_UP = re.compile(r"local LOOK_UP = \{([^}]*)\}")
"""The commands by which remove_members.lua looks members up."""
_QUOTED = re.compile(r"'([A-Z]+)'")


@cache
def commands_of(script: str) -> frozenset[str]:
    """Return the names of the commands that a script calls, in capitals."""
    return commands_in(load_all()[script].text)


def commands_in(text: str) -> frozenset[str]:
    """Return the names of the commands that are called in the text of a script."""
    code = _COMMENT.sub("", text)
    looked_up = (name for table in _LOOK_UP.findall(code) for name in _QUOTED.findall(table))
    return frozenset((*_CALLED.findall(code), *looked_up))
