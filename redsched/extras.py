"""The extras that bring packages beyond those of callers of the API, and the error where one is not installed."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from redsched.errors import InvalidRequest

EXTRA_OF = {
    "fastapi": "api",
    "fastapi_offline": "api",
    "httptools": "api",
    "hiredis": "scheduler",
    "jwt": "oidc",
    "libvirt": "libvirt",
    "matplotlib": "plots",
    "numpy": "scheduler",
    "opentelemetry": "otel",
    "prometheus_client": "api",
    "psutil": "agent",
    "redis": "scheduler",
    "starlette": "api",
    "uvicorn": "api",
    "uvloop": "scheduler",
}
"""The extra with each package that redsched itself imports, and with all else that commands at the store need."""

EXTRA_OF_COMMAND = {"agent": "agent", "api": "api", "replay": "embedded", "up": "embedded"}
"""The extra with all that a command needs, whichever package it misses first; further extras are for its options."""

FURTHER = frozenset(("libvirt", "oidc", "otel", "plots"))

AT_THE_STORE = frozenset(("acl", "audit", "export", "function", "functions", "import", "init", "upgrade"))
"""The commands that cannot use an API instead of the store."""


@contextmanager
def required() -> Iterator[None]:
    """Raise the InvalidRequest that names the extra if an import in the block finds that it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(error) or error from error


def missing(error: ModuleNotFoundError, command: str = "") -> InvalidRequest | None:
    """Return the error that names the extra to install for a command; None if the module is of none."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return None
    extra = EXTRA_OF[package]
    if extra not in FURTHER:
        extra = EXTRA_OF_COMMAND.get(command, extra)
    has_instead = package == "redis" and command not in EXTRA_OF_COMMAND and command not in AT_THE_STORE
    instead = ", or use the API of a fleet with --api" if has_instead else ""
    return InvalidRequest(
        f"this needs {package}, which is not installed: it is in the extra {extra!r}: {pip_install(extra)}{instead}"
    )


def pip_install(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    It works without an index that has redsched, because pip takes the redsched that is installed with this Python.
    """
    return f"{shlex.quote(sys.executable)} -m pip install 'redsched[{extra}]'"
