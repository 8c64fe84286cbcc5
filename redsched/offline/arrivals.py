"""What a replay requests, and when: the claims of an exported cell again, or the arrivals of a trace."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from redsched.model import MAX_COUNT, Hints, Request
from redsched.model.validation import parse_int, split_slot
from redsched.operate.backup.archive import Archive
from redsched.store.codec.fields import AMOUNT

LEASE_S = 3600
"""Of hosts and claims: longer than a replay, which is not played in real time."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request at a time, in seconds. Its work ends `for_s` later; None: never.

    `is_guess`: the request is unknown, so that it was derived from what its claim holds.
    `line`: its line of a trace; 0 if it is of none.
    """

    at_s: float
    request: Request
    for_s: float | None = None
    is_guess: bool = False
    line: int = field(default=0, compare=False)

    @property
    def where(self) -> str:
        """What an error names it by."""
        return f"of line {self.line}" if self.line else f"at {self.at_s:g} s"


def arrivals_of(archive: Archive) -> list[Arrival]:
    """Return the calls that made the claims of an archive, in their order; without a known request, one for each claim.

    The first is at 0 s. None ends, because an archive does not have the claims that have ended.
    """
    calls = _calls(archive)
    start_ms = min((at_ms for at_ms, _ in calls if at_ms), default=0)
    return [
        Arrival(max(at_ms - start_ms, 0) / 1000, request, is_guess=is_guess)
        for (at_ms, digest), claims in sorted(calls.items())
        for request, is_guess in _requests(archive.requests.get(digest, ""), claims)
    ]


def replayable(request: Request) -> Request:
    """Return a request without what only its own call and time can meet: ids, waits, hints about claims, deadlines."""
    asked = Request.from_canonical(request.canonical())
    return replace(_in_each(asked, hints=Hints()), lease_s=LEASE_S, max_runtime_s=0, payload=None)


def weighed_by(request: Request, policy: str) -> Request:
    """Return a request with this policy, also in its members; with its own if `policy` is empty."""
    if not policy:
        return request
    weighed = _in_each(request, policy=policy, weights={})
    return replace(weighed, policy=policy, weights={})


def _in_each(request: Request, **fields: Any) -> Request:
    """Replace fields in what is requested for each place: in the members, or in a request without any."""
    if not request.members:
        return replace(request, **fields)
    members = (replace(one, request=replace(one.request, **fields)) for one in request.members)
    return replace(request, members=tuple(members))


def _calls(archive: Archive) -> Mapping[tuple[int, str], list[Mapping[str, str]]]:
    calls: dict[tuple[int, str], list[Mapping[str, str]]] = {}
    for claim_id, values in archive.claims.items():
        if values["state"] != "ended":
            at_ms = parse_int(values.get("claimed_at_ms", ""), 0)
            calls.setdefault((at_ms, values.get("digest") or claim_id), []).append(values)
    return calls


def _requests(text: str, claims: list[Mapping[str, str]]) -> Iterator[tuple[Request, bool]]:
    if not text:
        yield from ((_guessed(values), True) for values in claims)
        return
    request = replayable(Request.from_canonical(text))
    yield (request if request.members else replace(request, count=min(len(claims), MAX_COUNT))), False


def _guessed(values: Mapping[str, str]) -> Request:
    resources: dict[str, int] = {}
    for name, text in values.items():
        if name.startswith(AMOUNT):
            resource_class = split_slot(name[len(AMOUNT) :])[1]
            resources[resource_class] = resources.get(resource_class, 0) + parse_int(text, 0)
    asked = {name: amount for name, amount in resources.items() if amount}
    return Request(asked, project=values.get("project", ""), lease_s=LEASE_S)
