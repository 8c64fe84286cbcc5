"""Checks of what a host says it holds, before any of it reaches the store.

An agent with access to the store is trusted with its cell. A host that reports over REST is not: whatever it sends must
be something that a journal can contain, because attest.lua restores claims from it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from redsched.errors import InvalidRequest
from redsched.model import MAX_HOST_CLAIMS
from redsched.model.claims import LOCAL
from redsched.model.limits import MAX_HOST_SLOTS, check_size
from redsched.model.tokens import Token, is_newer
from redsched.model.validation import MAX_AMOUNT, check_label_value, check_name, check_slot, check_topology, shown
from redsched.store.codec.claim_fields import AMOUNT, EXPIRES_AT_MS, FIELDS, RESIZING_TO, amounts_in
from redsched.store.codec.field_kinds import COUNT
from redsched.store.codec.replies import EndedPlacement, JournaledClaim

MAX_TOPOLOGIES = 11
MAX_VALUE = 32_768
"""The length of a field's value: the members of the largest gang with the longest ids take less."""


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
            _PLAIN["end_reason"](one.end_reason)
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


def _amount(slot: str, text: str) -> None:
    check_slot(slot)
    COUNT.check(text)


def _counted(topology: str, text: str) -> None:
    check_topology(topology)
    if topology in ("host", "zone"):
        check_name(topology, text)
    else:
        check_label_value(topology, text)


_PLAIN = {one.name: one.kind.check for one in FIELDS if one.kind and (one.journaled or one.name == EXPIRES_AT_MS)}
_FAMILIES: Mapping[str, Callable[[str, str], object]] = {
    AMOUNT: _amount,
    RESIZING_TO: _amount,
    "counted": _counted,
}

if missing := {one.name for one in FIELDS if one.journaled} - _PLAIN.keys() - _FAMILIES.keys():
    raise TypeError(f"no check of {missing}, which agents journal")
