"""The format of a trace, which `replay` reads: hosts, and requests with the time of each.

    {"kind": "trace", "format": 1}
    {"kind": "host", "name": "h1", "inventories": {"VCPU": {"total": 64}}}
    {"kind": "arrival", "at_s": 0, "for_s": 3600, "request": {"resources": {"VCPU": 4}}}

Each line is a JSON object. Hosts and declared objects have the lines of an export. docs/howto/compare-policies.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.offline.arrivals import Arrival, replayable
from redsched.operate.backup.archive import (
    DECLARED,
    FORMAT,
    Archive,
    ArchiveReader,
    Head,
    json_object,
)

ParseRequest = Callable[[dict[str, Any]], Request]

TRACE_FORMAT = 1
"""The version of the format."""
MAX_S = 10_000_000_000
"""The greatest time of a trace: 317 years."""
KINDS = ("trace", *DECLARED, "host", "arrival")
EMPTY_HEAD = Head(FORMAT, "", "c1", "1-trace", 0, 0, 0, 0)
"""The head of an archive that has only what a trace has, for the private store on which it is played."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The hosts and declared objects to start with, and the requests in the order of their times."""

    fleet: Archive
    arrivals: tuple[Arrival, ...]


def is_trace(first_line: str) -> bool:
    """Return whether a file with this first line is a trace."""
    try:
        return json_object(first_line).get("kind") == "trace"
    except InvalidRequest:
        return False


def read_trace(lines: Iterable[str], parse_request: ParseRequest) -> Trace:
    """Parse the lines of a trace. Raises InvalidRequest, which names the line and what to do.

    `parse_request` parses the body of a REST request, which may have units.
    """
    reading = _TraceReader(parse_request)
    for number, line in enumerate(lines, 1):
        try:
            reading.take(json_object(line, "correct or remove the line"), number)
        except InvalidRequest as error:
            raise InvalidRequest(f"line {number}: {error.detail}") from error
    return reading.trace()


class _TraceReader:
    """The parts of a trace that have been read so far."""

    def __init__(self, parse_request: ParseRequest) -> None:
        self._parse_request = parse_request
        self._begun = False
        self._fleet = ArchiveReader(EMPTY_HEAD)
        self._arrivals: list[Arrival] = []

    def take(self, item: dict[str, Any], number: int) -> None:
        kind = item.get("kind")
        if kind not in KINDS:
            raise InvalidRequest(f"kind {kind!r:.80} is not known in a trace: use one of {', '.join(KINDS)}")
        if (kind == "trace") == self._begun:
            raise InvalidRequest('the first line, and no other, must be {"kind": "trace", "format": 1}')
        if kind == "trace":
            self._begun = True
            if item != {"kind": "trace", "format": TRACE_FORMAT}:
                raise InvalidRequest(f'the first line must be {{"kind": "trace", "format": {TRACE_FORMAT}}}')
        elif kind == "arrival":
            self._arrivals.append(_arrival(item, number, self._parse_request))
        else:
            self._fleet.take(item)

    def trace(self) -> Trace:
        fleet = self._fleet.archive()
        if not (fleet.hosts and self._arrivals):
            raise InvalidRequest("a trace needs a line for at least one host, and for one arrival")
        return Trace(fleet, tuple(sorted(self._arrivals, key=lambda one: one.at_s)))


def _arrival(item: Mapping[str, Any], number: int, parse_request: ParseRequest) -> Arrival:
    unknown = sorted(item.keys() - {"kind", "at_s", "for_s", "request"})
    if unknown or "request" not in item:
        problem = f"{unknown[0]!r:.80} is not known" if unknown else "`request` is missing"
        raise InvalidRequest(f"{problem}: an arrival has at_s, for_s and request")
    at_s, for_s = _seconds("at_s", item.get("at_s")), item.get("for_s")
    if for_s is not None and not _seconds("for_s", for_s):
        raise InvalidRequest("for_s must be above 0: leave it out for work that does not end")
    if not isinstance(item["request"], dict):
        raise InvalidRequest('request must be an object, such as {"resources": {"VCPU": 4}}')
    request = parse_request(item["request"])
    return Arrival(at_s, replayable(request), for_s or request.max_runtime_s or None, line=number)


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_S:
        raise InvalidRequest(f"{name} must be a number of seconds, 0 to {MAX_S}, not {value!r:.80}")
    return value
