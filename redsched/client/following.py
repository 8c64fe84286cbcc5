"""Following one claim by reading it again and again, which every caller may do that sees the claim."""

from collections.abc import Collection

from redsched.client.calls import get_claim
from redsched.client.exchange import Api, Exchange, Pause, exchange
from redsched.errors import ClaimState, InvalidRequest
from redsched.model import Claim, ClaimStatus

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
        claim = yield from exchange(get_claim(claim_id), api)
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
        claim = yield from exchange(get_claim(claim_id), api)
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
