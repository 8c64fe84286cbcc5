"""The stream of changes as a client reads it: one connection of server-sent events."""

from dataclasses import dataclass

import httpx

from redsched.client.exchange import Api, authorization, check_open, error_of, lost
from redsched.errors import RedschedError
from redsched.model.record import adapter
from redsched.model.records.changes import Change

PATH = "/v1/changes"
PING_S = 15.0
"""How often the API sends something at least."""


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """An event of the stream. `id` is where to go on after it, in every cell.

    `change` is None if changes are missing: read the state again.
    """

    id: str
    change: Change | None


class EventParser:
    """Parses the lines of a stream."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> ChangeEvent | None:
        """Return the event that this line ends; None within an event, and for comments."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        is_change = fields.get("event") == "change"
        change = adapter(Change).validate_json(fields["data"], extra="ignore") if is_change else None
        return ChangeEvent(fields.get("id", ""), change)


def stream_request(client: httpx.Client | httpx.AsyncClient, api: Api, after: str) -> httpx.Request:
    """Return the request for the changes after an event; '' for only new ones."""
    check_open(client)
    headers = {**authorization(api.token()), **({"Last-Event-ID": after} if after else {})}
    timeout = httpx.Timeout(api.timeout_s, read=api.timeout_s + PING_S, pool=None)
    return client.build_request("GET", PATH, headers=headers, timeout=timeout)


def stream_error(api: Api, outcome: httpx.Response | httpx.HTTPError) -> RedschedError:
    """Return the error of a stream that was refused (its reply, which has been read), or that broke."""
    if isinstance(outcome, httpx.Response):
        return error_of(outcome, api.url)
    return lost("GET", PATH, api.url, outcome)
