"""Following one claim, or the log of events, by reading it again and again, as every caller may that sees them."""

from collections.abc import Collection, Iterator, Sequence

from redsched.client.base import call_of
from redsched.client.exchange import Api, Exchange, Pause, exchange
from redsched.errors import ClaimState, InvalidRequest
from redsched.model import Claim, ClaimStatus
from redsched.model.filters import RESET, EventFilter
from redsched.model.records.events import Event
from redsched.model.records.pages import Page
from redsched.operations.claims import Claims

EVERY_S = 1.0
"""How often a claim is read by default."""
States = str | Collection[str]


def has_ended(claim: Claim) -> bool:
    """Return whether nothing follows by itself: the claim has ended, or is shelved."""
    return claim.state is ClaimStatus.ENDED


def next_change(claim_id: str, last: Claim | None, every_s: float, api: Api) -> Exchange[Claim]:
    """Return a claim: as it is now if it has not been read yet, else as soon as it differs from the last time."""
    _check_every(every_s)
    while True:
        if last is not None:
            yield Pause(every_s)
        claim = yield from exchange(call_of(Claims.get, {"claim_id": claim_id}), api)
        if last is None or _differs(claim, last):
            return claim


def once_in_state(claim_id: str, state: States, timeout_s: float | None, every_s: float, api: Api) -> Exchange[Claim]:
    """Return a claim once it is in the state, or in one of the states.

    Raises ClaimState if it ends before, and TimeoutError after `timeout_s` seconds (None: never).
    """
    _check_every(every_s)
    wanted = _states(state)
    end_s = None if timeout_s is None else api.clock() + timeout_s
    while True:
        claim = yield from exchange(call_of(Claims.get, {"claim_id": claim_id}), api)
        if claim.state in wanted:
            return claim
        if has_ended(claim):
            why = f" ({claim.end_reason})" if claim.end_reason else ""
            raise ClaimState(f"claim {claim_id} has ended{why} and will not be {' or '.join(sorted(wanted))}")
        left_s = every_s if end_s is None else end_s - api.clock()
        if left_s <= 0:
            raise TimeoutError(
                f"claim {claim_id} is {claim.state} after {timeout_s:g} s, and not {' or '.join(sorted(wanted))}"
            )
        yield Pause(min(every_s, left_s))


def _differs(claim: Claim, last: Claim) -> bool:
    """Return whether anything but a lease has changed."""
    return any(
        getattr(claim, name) != getattr(last, name)
        for name in ("state", "host", "token", "slots", "resizing_to", "end_reason")
    )


def _states(state: States) -> set[str]:
    known, wanted = [one.value for one in ClaimStatus], {state} if isinstance(state, str) else set(state)
    if not wanted:
        raise InvalidRequest(f"no state to wait for: use {', '.join(known)}")
    for unknown in sorted(wanted - set(known)):
        raise InvalidRequest(f"unknown state {unknown!r}: use {', '.join(known)}")
    return {ClaimStatus(one).value for one in wanted}


def _check_every(every_s: float) -> None:
    if not every_s > 0:
        raise InvalidRequest(f"every_s is {every_s}: give seconds above 0")


class EventsAfter:
    """Where a reader of the log is: `after` is the id of the last event that it has read, '' before the first."""

    def __init__(self, after: str, wanted: EventFilter) -> None:
        self.after, self._wanted, self._is_new = after, wanted, not after

    def begin(self, newest: Sequence[Event]) -> None:
        """Go on after the latest events."""
        self.after = newest[-1].id if newest else ""

    @property
    def _cells(self) -> set[str]:
        """The cells in which it is known where to go on."""
        return {one.partition(":")[0] for one in self.after.split(",")}

    def matching(self, page: Page[Event]) -> Iterator[Event]:
        """Yield the events of the page after `after` that are wanted, and what says that some may be missing."""
        for one in page.items:
            # A log that had no event is not known at first: then its start is where to begin.
            is_begin = self._is_new and one.kind == RESET and one.cell not in self._cells
            self.after = one.id
            if not is_begin and (one.kind == RESET or self._wanted.matches(_fields(one))):
                yield one
        self.after = page.next or self.after


def _fields(one: Event) -> dict[str, str]:
    return {**one.facts, "kind": one.kind, "at_ms": str(one.at_ms)}
