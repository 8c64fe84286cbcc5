"""Checks of what a host says it holds, before any of it reaches the store.

An agent with access to the store is trusted with its cell. A host that reports over REST is not: whatever it sends must
be something that a journal can contain, because attest.lua restores claims from it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from redsched.errors import InvalidRequest
from redsched.model import MAX_ALTERNATES, MAX_ATTEMPTS, MAX_HOST_CLAIMS, MAX_RUNTIME_S, EndReason, GangOnExit, OnExit
from redsched.model.claims import LOCAL, LOG_PATH
from redsched.model.limits import MAX_HOST_SLOTS, check_size
from redsched.model.tokens import Token, is_newer
from redsched.model.validation import (
    MAX_AMOUNT,
    check_label_value,
    check_name,
    check_owner,
    check_slot,
    check_topology,
    parse_int,
    shown,
)
from redsched.origin import Origin, checked
from redsched.store.codec.claim_fields import AMOUNT, FIELDS, RESIZING_TO, amounts_in
from redsched.store.codec.results import EndedPlacement, JournaledClaim

MAX_TOPOLOGIES = 11
MAX_VALUE = 32_768
"""The length of a field's value: the members of the largest gang with the longest ids take less."""

_DIGEST = re.compile(rf"([0-9a-f]{{1,64}}|{LOCAL})\Z")
_MEMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_GROUP = rf"{_MEMBER.pattern}={_MEMBER.pattern}(?:,{_MEMBER.pattern})*"
"""A member with its claims: `db=a,b`. There is one way to read each text, so a match takes linear time."""
_GANG_MEMBERS = re.compile(rf"{_GROUP}(?: {_GROUP})*\Z")

_LOG = re.compile(rf"{_MEMBER.pattern}:{LOG_PATH}\Z")

Check = Callable[[str], object]


def check_attested(held: Sequence[JournaledClaim], ended: Sequence[EndedPlacement], epoch: str = "") -> None:
    """Raise InvalidRequest unless a journal can contain these placements; `epoch` is the one to attest to."""
    check_size("claims", held, MAX_HOST_CLAIMS)
    check_size("ended", ended, MAX_HOST_CLAIMS)
    for claim in held:
        _check_held(claim, epoch)
    for one in ended:
        check_name("claim", one.id)
        _check_tokens(one.id, "", one.placed, one.token, epoch)
        if one.end_reason:
            _one_of(EndReason)(one.end_reason)
    _check_names([*(one.placed or one.token for one in held if one.token), *(one.placed or one.token for one in ended)])
    _check_sums(held)


def _check_held(claim: JournaledClaim, epoch: str) -> None:
    check_name("claim", claim.id)
    _check_tokens(claim.id, claim.root, claim.placed, claim.token, epoch)
    families = Counter(name.partition(".")[0] for name in claim.record)
    most = {AMOUNT: MAX_HOST_SLOTS, RESIZING_TO: MAX_HOST_SLOTS, "counted": MAX_TOPOLOGIES}
    for family, count in families.items():
        if count > most.get(family, 1):
            raise InvalidRequest(f"claim {claim.id}: has {count} fields {family!r}: at most {most.get(family, 1)}")
    for name, value in claim.record.items():
        _check_field(claim.id, name, value)
    if claim.record.get("digest") == LOCAL and "owner" in claim.record:
        raise InvalidRequest(f"claim {claim.id}: is local, so nobody owns it: leave out owner")


def _check_field(claim_id: str, name: str, value: str) -> None:
    family, dot, rest = name.partition(".")
    check = _FAMILIES.get(family) if dot else None
    plain = _PLAIN.get(name)
    if (check is None and plain is None) or len(value) > MAX_VALUE:
        raise InvalidRequest(
            f"claim {claim_id}: {shown(name)} is no field of a journal, or is too long: report what the store returned"
        )
    try:
        if plain is not None:
            plain(value)
        elif check is not None:
            check(rest, value)
    except InvalidRequest as error:
        raise InvalidRequest(f"claim {claim_id}: {shown(name)}: {error.detail}") from None


def _check_tokens(claim_id: str, root: str, placed: str, token: str, epoch: str) -> None:
    """Check that tokens are in the order in which the store issued them, and none is of a later epoch."""
    if not token:
        return
    first = Token.parse(token)
    name = Token.parse(placed or token)
    start = Token.parse(root) if root else name
    if not start <= name <= first:
        raise InvalidRequest(
            f"claim {claim_id}: root {start}, placed {name} and token {first} must be in this order: report what the "
            "store returned"
        )
    if epoch and is_newer(first.epoch, epoch):
        raise InvalidRequest(f"claim {claim_id}: token {first} is of a later epoch than {epoch}: attest to that one")


def _check_names(placed: Iterable[str]) -> None:
    name, times = next(iter(Counter(placed).most_common(1)), ("", 0))
    if times > 1:
        raise InvalidRequest(f"placement {name} is reported {times} times: report it once, as held or as ended")


def _check_sums(held: Sequence[JournaledClaim]) -> None:
    """Check that the claimed amounts of each slot can be added up: beyond this, Lua's numbers are not exact."""
    sums = Counter[str]()
    for claim in held:
        sums.update(amounts_in(claim.record, AMOUNT))
    for slot, amount in sums.items():
        if amount > MAX_AMOUNT:
            raise InvalidRequest(f"claims hold {amount} {slot} together, above the largest amount {MAX_AMOUNT}")


def _whole(low: int, high: int = MAX_AMOUNT) -> Check:
    def check(text: str) -> None:
        if not low <= parse_int(text, -1) <= high:
            raise InvalidRequest(f"must be a whole number from {low} to {high}, not {shown(text)}")

    return check


def _one_of(kind: type[EndReason] | type[OnExit] | type[GangOnExit]) -> Check:
    values = frozenset(one.value for one in kind)

    def check(text: str) -> None:
        if text not in values:
            raise InvalidRequest(f"must be one of {', '.join(sorted(values))}, not {shown(text)}")

    return check


def _matching(pattern: re.Pattern[str]) -> Check:
    def check(text: str) -> None:
        if not pattern.match(text):
            raise InvalidRequest(f"{shown(text)} is malformed: report what the store returned")

    return check


def _name(text: str) -> None:
    if text:
        check_name("name", text)


def _amount(slot: str, text: str) -> None:
    check_slot(slot)
    _whole(0)(text)


def _counted(topology: str, text: str) -> None:
    check_topology(topology)
    if topology in ("host", "zone"):
        check_name(topology, text)
    else:
        check_label_value(topology, text)


def _actor(text: str) -> None:
    checked(Origin(actor=text))


def _owner(text: str) -> None:
    check_owner(text)


def _request_id(text: str) -> None:
    checked(Origin(request_id=text))


_PLAIN: Mapping[str, Check] = {
    "actor": _actor,
    "request_id": _request_id,
    "project": _name,
    "owner": _owner,
    "consumer": _name,
    "group": _name,
    "gang": _name,
    "digest": _matching(_DIGEST),
    "gang_members": _matching(_GANG_MEMBERS),
    "gang_on_exit": _one_of(GangOnExit),
    "claimed_at_ms": _whole(0),
    "expires_at_ms": _whole(0),
    "work_ended_at_ms": _whole(0),
    "restarts": _whole(0),
    "max_attempts": _whole(1, MAX_ATTEMPTS),
    "max_runtime_s": _whole(1, MAX_RUNTIME_S),
    "runtime_deadline_ms": _whole(0),
    "alternates": _whole(0, MAX_ALTERNATES),
    "on_exit": _one_of(OnExit),
    "log": _matching(_LOG),
    "end_reason": _one_of(EndReason),
    "resized_from": Token.parse,
}
_FAMILIES: Mapping[str, Callable[[str, str], object]] = {
    AMOUNT: _amount,
    RESIZING_TO: _amount,
    "counted": _counted,
}

if missing := {one.name for one in FIELDS if one.journaled} - _PLAIN.keys() - _FAMILIES.keys():
    raise TypeError(f"no check of {missing}, which agents journal")
