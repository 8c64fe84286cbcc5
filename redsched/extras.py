"""The extras that bring packages beyond those of an agent, and the error where one is not installed."""

from redsched.errors import InvalidRequest

EXTRA_OF = {
    "fastapi": "api",
    "fastapi_offline": "api",
    "httptools": "api",
    "httpx": "rest",
    "jwt": "oidc",
    "matplotlib": "plots",
    "numpy": "scheduler",
    "prometheus_client": "api",
    "starlette": "api",
    "uvicorn": "api",
}
"""The extra with each package that redsched itself imports; docs/packages.md says which command needs which."""


def missing(error: ModuleNotFoundError) -> InvalidRequest | None:
    """Return the error that names the extra to install; None if the module is of none."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return None
    extra = EXTRA_OF[package]
    return InvalidRequest(
        f"this needs {package}, which is not installed: it is in the extra {extra!r}: pip install 'redsched[{extra}]'"
    )
