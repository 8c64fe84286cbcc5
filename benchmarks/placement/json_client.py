"""A blocking HTTP client for JSON with one connection that is kept open. Both sides of a comparison use it."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPSConnection
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

TIMEOUT_S = 60.0


class Answer(NamedTuple):
    """A status, and the body if it is a JSON object, else an empty one."""

    status: int
    body: dict[str, Any]


class JsonClient:
    """Sends requests to paths below a URL, such as http://controller/placement. A context manager; not for threads."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a service: give one like http://controller/placement")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=TIMEOUT_S)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"accept": "application/json", **(headers or {})}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """Send a request and return the answer, whatever its status. Raises OSError or HTTPException without one."""
        headers = self._headers if body is None else {**self._headers, "content-type": "application/json"}
        self._connection.request(method, self._prefix + path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        text = response.read()
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            found = {}
        return Answer(response.status, found if isinstance(found, dict) else {})
