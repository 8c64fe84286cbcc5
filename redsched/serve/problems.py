"""Errors as RFC 9457 problems: `type`, `title`, `status`, `detail` and facts; and the errors of HTTP itself."""

from collections.abc import Mapping

from pydantic_core import to_json
from starlette.responses import Response

from redsched import logs, origin
from redsched.errors import PreconditionFailed, RedschedError, Unavailable
from redsched.model.records.problems import members

MEDIA_TYPE = "application/problem+json"

log = logs.get_logger(__name__)


class UnsupportedMediaType(RedschedError):
    """The request's content type is not JSON."""

    problem, title, status = "unsupported-media-type", "The body is not declared as JSON", 415


class BadHttp(RedschedError):
    """What was sent is not HTTP, or uses a part of it that is not supported."""

    problem, title, status = "bad-http", "The request is not valid HTTP", 400


class HeadersTooLarge(RedschedError):
    """The request line, the headers or the trailers are too large."""

    problem, title, status = "headers-too-large", "The headers are too large", 431


class RequestTimeout(RedschedError):
    """The client sent a request too slowly."""

    problem, title, status = "request-timeout", "The request came too slowly", 408


class TooManyConnections(Unavailable):
    """All connections of the process are in use."""

    problem, title = "too-many-connections", "Too many connections"


def problem(error: RedschedError, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response for `error`."""
    if error.public != error.detail:
        log.warning("request_failed", problem=error.problem, detail=error.detail)
    all_headers = dict(headers or {})
    if isinstance(error, Unavailable):
        all_headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, PreconditionFailed) and error.facts.tag:
        all_headers["ETag"] = f'"{error.facts.tag}"'
    request_id = origin.current().request_id
    body = {**members(error), "request_id": request_id} if request_id else members(error)
    return Response(to_json(body), error.status, all_headers, MEDIA_TYPE)
