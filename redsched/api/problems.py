"""Every error of a route as a problem (redsched/serve/problems.py): all 4xx and 5xx are.

Errors that exist only in the API (a body too large, an unknown method) are defined here, below those of
`redsched.errors`.
"""

import sys
from typing import ClassVar, cast

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from redsched import errors, logs
from redsched.api.access.callers import caller_of
from redsched.api.access.redact import redact_error
from redsched.api.methods import allowed_methods
from redsched.errors import Forbidden, InvalidRequest, RedschedError, Unavailable
from redsched.requests.parsing import invalid, shown_text
from redsched.serve import problems as served
from redsched.serve.problems import problem

log = logs.get_logger(__name__)


class BodyTooLarge(RedschedError):
    """The body is larger than the setting max_body_bytes."""

    problem, title, status = "body-too-large", "The body is too large", 413


class MethodNotAllowed(RedschedError):
    """The route has no such method."""

    problem, title, status = "method-not-allowed", "Method not allowed", 405


class NoRoute(RedschedError):
    """No route has this path."""

    problem, title, status = "not-found", "Not found", 404


class TooManyRequests(Unavailable):
    """The caller has too much in progress in this worker."""

    problem, title, status = "too-many-requests", "The caller has too many requests in progress", 429


class NotReady(Unavailable):
    """Not every worker has caught up yet."""

    problem, title = "not-ready", "Not ready"


class InternalError(RedschedError):
    """A fault of redsched itself."""

    problem: ClassVar[str] = "internal-error"


def all_errors() -> list[type[RedschedError]]:
    """Return the classes of all errors that the API can return."""
    classes = [one for module in (errors, served, sys.modules[__name__]) for one in vars(module).values()]
    return [one for one in classes if isinstance(one, type) and issubclass(one, RedschedError)]


async def _on_error(request: Request, error: Exception) -> Response:
    return refused(request, cast(RedschedError, error))


def refused(request: Request, error: RedschedError) -> Response:
    """Return the response for an error of a route, as its caller may see it."""
    if isinstance(error, Forbidden):  # of what the body names, which the gate does not read
        request.app.state.refused_agents.note(request.scope, error, caller_of(request.scope))
    return problem(redact_error(request, error))


async def _on_invalid(_request: Request, error: Exception) -> Response:
    return problem(invalid(cast("RequestValidationError | ValidationError", error).errors()))


async def _on_http(request: Request, error: Exception) -> Response:
    error = cast(HTTPException, error)
    if error.status_code == 404:
        return problem(NoRoute(f"there is no route {shown_text(request.url.path)!r}: see /docs for all routes"))
    if error.status_code == 405:
        allowed = ", ".join(allowed_methods(request.scope))
        said = f"{shown_text(request.method)} is not a method of {shown_text(request.url.path)!r}: use {allowed}"
        return problem(MethodNotAllowed(said), {"Allow": allowed})
    return problem(InvalidRequest(str(error.detail)))


async def _on_fault(request: Request, error: Exception) -> Response:
    return fault(request, error)


def fault(request: Request, error: Exception) -> Response:
    """Log an error that no code expected, and return the response for it."""
    log.error("request failed", method=request.method, path=request.url.path, exc_info=error)
    return problem(
        InternalError(f"{type(error).__name__} while handling the request: this is a bug in redsched, see its log")
    )


def install(app: FastAPI) -> None:
    """Install handlers that turn every error of `app` into a problem."""
    app.add_exception_handler(RedschedError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_fault)
