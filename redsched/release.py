"""The release of redsched that runs."""

from functools import cache
from importlib.metadata import version


@cache
def release() -> str:
    """Return the release, in the letters that names may have: `1.2.0`, or `1.2.0-local` for `1.2.0+local`."""
    return version("redsched").replace("+", "-")
