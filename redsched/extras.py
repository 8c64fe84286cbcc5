"""The extras that bring packages beyond those of callers of the API, and the error where one is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from redsched.errors import InvalidRequest

EXTRA_OF = {
    "fastapi": "api",
    "fastapi_offline": "api",
    "httptools": "api",
    "hiredis": "agent",
    "jwt": "oidc",
    "libvirt": "libvirt",
    "matplotlib": "plots",
    "numpy": "scheduler",
    "opentelemetry": "otel",
    "prometheus_client": "api",
    "psutil": "agent",
    "redis": "agent",
    "starlette": "api",
    "uvicorn": "api",
    "uvloop": "agent",
}
"""The extra with each package that redsched itself imports; docs/packages.md says which command needs which."""


EXTRA_OF_COMMAND = {"agent": "agent", "api": "api", "up": "embedded"}
"""The extra with all that a service needs, whichever package it misses first."""


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
    extra = EXTRA_OF_COMMAND.get(command, EXTRA_OF[package])
    instead = ", or use the API of a fleet with --api" if package == "redis" and command not in EXTRA_OF_COMMAND else ""
    return InvalidRequest(
        f"this needs {package}, which is not installed: it is in the extra {extra!r}: "
        f"pip install 'redsched[{extra}]'{instead}"
    )
