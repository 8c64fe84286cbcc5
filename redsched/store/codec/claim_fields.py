"""The fields of a claim's hash, described once.

This table defines the lists in the Lua scripts (`-- include: claim_fields`), what a request passes on to its claims,
what is read from a hash, what agents keep in their journals and may report, and the rows of docs/keys.md, which
`scripts/claim-fields` writes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redsched.model import (
    MAX_ALTERNATES,
    MAX_ATTEMPTS,
    MAX_RUNTIME_S,
    Amounts,
    Claim,
    ClaimStatus,
    EndReason,
    GangOnExit,
    OnExit,
    Request,
)
from redsched.model.claims import LOCAL
from redsched.model.validation import MAX_AMOUNT, parse_int
from redsched.store.codec.field_kinds import (
    ACTOR,
    COUNT,
    DIGEST,
    GANG_MEMBERS,
    LOG,
    NAME,
    OWNER,
    REQUEST_ID,
    TIME,
    TOKEN,
    Kind,
    one_of,
    whole,
)

__all__ = [
    "ALTERNATES",
    "AMOUNT",
    "CLAIM",
    "DECISION",
    "EXPIRES_AT_MS",
    "FIELDS",
    "PLACEMENT",
    "REQUEST",
    "RESIZING_TO",
    "Field",
    "alternates_from",
    "alternates_name",
    "alternates_text",
    "amounts_in",
    "attributes_in",
    "carried",
    "carried_by",
    "decision_name",
    "has_alternates",
    "lua_tables",
    "record_of",
    "record_with",
    "request_name",
    "texts_of",
]

CLAIM, PLACEMENT = "claim", "placement"
ALTERNATES, AMOUNT, RESIZING_TO = "alternates", "amount", "resizing_to"
DECISION = "decision"
REQUEST = "request"
EXPIRES_AT_MS = "expires_at_ms"
"""Not journaled, but reported for a placement that its host has not accepted yet."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field, or all fields whose names begin with it and a dot (`family`: what follows).

    `of`: whether it belongs to the claim or to one of its placements. `kind`: the kind of its values. `journaled`:
    whether agents keep it and report it when they attest. `survives`: whether it remains after the claim has ended.
    """

    name: str
    of: str
    doc: str
    kind: Kind | None = None
    journaled: bool = False
    survives: bool = False
    family: str = ""
    carried: bool = False
    """Whether the scripts that place a claim only pass it on from the request. Others may read it from the claim."""
    absent: str | None = None
    """For a carried field: the value that is not written, because a claim without the field has it."""
    attribute: str | None = None
    """The attribute of `Claim` that has the value, if it has another name; '' if none has it."""

    @property
    def shown_name(self) -> str:
        """The name as documents have it: `amount.<slot>`."""
        return f"{self.name}.<{self.family}>" if self.family else self.name


FIELDS = (
    Field("project", CLAIM, "The project that the claim belongs to.", NAME, journaled=True, survives=True),
    Field(
        "owner",
        CLAIM,
        "Who in the project owns the claim; absent if nobody does.",
        OWNER,
        journaled=True,
        survives=True,
    ),
    Field(
        "consumer",
        CLAIM,
        "The purpose of the claim, in the terms of its owner.",
        NAME,
        journaled=True,
        survives=True,
        carried=True,
    ),
    Field("actor", CLAIM, "Who made the claim, if known.", ACTOR, journaled=True, survives=True),
    Field("request_id", CLAIM, "The request that made the claim, if known.", REQUEST_ID, journaled=True, survives=True),
    Field(
        "digest",
        CLAIM,
        "The digest of the request; `local` for work that the host found.",
        DIGEST,
        journaled=True,
        survives=True,
    ),
    Field(
        "group",
        CLAIM,
        "The server group that the claim is a member of.",
        NAME,
        journaled=True,
        attribute="server_group",
    ),
    Field(
        "gang",
        CLAIM,
        "The gang that it was claimed with, named by the id of its first member.",
        NAME,
        journaled=True,
        survives=True,
    ),
    Field(
        "gang_members",
        CLAIM,
        "For a gang with relations or `gang_on_exit`: the claims of each member, as `db=a,b app=c`; the member of a"
        " gang of equal places is called `places`.",
        GANG_MEMBERS,
        journaled=True,
        survives=True,
        carried=True,
        absent="",
    ),
    Field(
        "gang_on_exit",
        CLAIM,
        "What happens to the other members of its active gang when it ends by itself; `keep` if absent.",
        one_of(GangOnExit),
        journaled=True,
        survives=True,
        carried=True,
        absent=GangOnExit.KEEP,
    ),
    Field(
        "gang_exit",
        CLAIM,
        "What the other members of its gang have yet to follow: `replace` (all are placed again) or `release`.",
        one_of(GangOnExit),
        survives=True,
    ),
    Field("call_id", CLAIM, "The last call that returned this claim. Only that call may undo it.", survives=True),
    Field("claimed_at_ms", CLAIM, "When the claim was made (Unix, ms).", TIME, journaled=True, survives=True),
    Field(
        "max_attempts",
        CLAIM,
        "The number of placements after which the claim fails; 1 if absent.",
        whole(1, MAX_ATTEMPTS, absent=1),
        journaled=True,
        survives=True,
        carried=True,
        absent="1",
    ),
    Field(
        "max_runtime_s",
        CLAIM,
        "How long its work may run, in seconds; no limit if absent.",
        whole(1, MAX_RUNTIME_S),
        journaled=True,
        survives=True,
    ),
    Field(
        "runtime_deadline_ms",
        CLAIM,
        "When its host stops the work: `max_runtime_s` after it was claimed or unshelved (Unix, ms).",
        TIME,
        journaled=True,
        survives=True,
    ),
    Field(
        "clock_shift_ms",
        CLAIM,
        "`clock_shift_ms` of `meta` when its deadlines were written; 0 if absent.",
        survives=True,
    ),
    Field(
        ALTERNATES,
        CLAIM,
        "The number of hosts in the claim's list of alternates, a key of its own.",
        whole(0, MAX_ALTERNATES),
        journaled=True,
        attribute="",
    ),
    Field(
        "attempts",
        CLAIM,
        "The number of placements since it was last active; 1 if absent.",
        whole(1, absent=1),
        survives=True,
    ),
    Field(
        "failed_moves",
        CLAIM,
        "The number of consecutive failed moves since it was last active; 0 if absent.",
        COUNT,
    ),
    Field("move_failed_at_ms", CLAIM, "When the last of these moves failed (Unix, ms).", TIME),
    Field(
        "restarts",
        CLAIM,
        "How often its work has ended by itself, or was stopped with its gang, since it last ran for 10 minutes.",
        COUNT,
        journaled=True,
    ),
    Field(
        "active_at_ms",
        CLAIM,
        "When it was last active (Unix, ms), for claims that are placed again when their work ends.",
    ),
    Field("searches", CLAIM, "While `pending`: the number of unsuccessful searches since its last placement failed."),
    Field("retry_root", CLAIM, "While `pending`: `root` of the failed placement."),
    Field("retry_from", CLAIM, "While `pending`: the token of the failed placement.", TOKEN),
    Field("retry_reason", CLAIM, "While `pending`: why that placement ended."),
    Field(
        "tried",
        CLAIM,
        "`1` for a host on which it has failed since it was last active.",
        survives=True,
        family="host",
    ),
    Field(
        "closed",
        CLAIM,
        "The token up to which the claim was given up. Placements whose `root` is not newer are obsolete.",
        TOKEN,
        survives=True,
    ),
    Field(
        "closed_reason",
        CLAIM,
        "Why it was given up: `released`, `shelved`, `failed` or `max-runtime`; `expired` if a lease of its gang "
        "ran out.",
        one_of(EndReason),
        survives=True,
    ),
    Field("closed_by", CLAIM, "Who released or shelved it, if known.", ACTOR, survives=True),
    Field(
        "current",
        CLAIM,
        "The newest placement that was ever active, unless an active placement implies it.",
        survives=True,
    ),
    Field("current_root", CLAIM, "The `root` of `current`, if different.", survives=True),
    Field("voided_at_ms", CLAIM, "When the claim was voided because its id was unknown (Unix, ms).", survives=True),
    Field(
        "on_exit",
        CLAIM,
        "What happens to the claim when its work ends by itself; `release` if absent.",
        one_of(OnExit),
        journaled=True,
        survives=True,
        carried=True,
        absent=OnExit.RELEASE,
    ),
    Field(
        "log",
        CLAIM,
        "The file with the log of its newest work, as `host:path`; absent if the hook has named none.",
        LOG,
        journaled=True,
        survives=True,
    ),
    Field("host", PLACEMENT, "The host of the placement.", survives=True),
    Field(
        "state",
        PLACEMENT,
        "`claimed`, `starting`, `active` or `ending`; `pending` or `ended` for a claim without a placement.",
        survives=True,
    ),
    Field("token", PLACEMENT, "The fencing token.", survives=True),
    Field(
        "placed",
        PLACEMENT,
        "The name of the placement: its first token, if a resize has changed `token`.",
        survives=True,
    ),
    Field("root", PLACEMENT, "The first placement in its chain of moves and retries, if different.", survives=True),
    Field("from", PLACEMENT, "The token of the placement that it was moved from or retries."),
    Field("from_host", PLACEMENT, "The host of that placement."),
    Field(
        "from_why",
        PLACEMENT,
        "Why it left that placement: `written-off` or `drained` (the host), `moved` (a call), `failed`, `expired`, "
        "`work-ended`, `gang` (all of its gang is placed again) or `shelved`.",
    ),
    Field("placed_at_ms", PLACEMENT, "When it was moved or placed again (Unix, ms)."),
    Field(
        "end_reason",
        PLACEMENT,
        "Why it is ending or has ended.",
        one_of(EndReason, EndReason | None),
        journaled=True,
        survives=True,
    ),
    Field(EXPIRES_AT_MS, PLACEMENT, "When its lease expires, while it is not active (Unix, ms).", TIME),
    Field("move_deadline_ms", PLACEMENT, "The deadline by which a move must have made it active (Unix, ms)."),
    Field("inbox_id", PLACEMENT, "Its entry in the inbox of the host."),
    Field(
        "work_ended_at_ms",
        PLACEMENT,
        "When its work was found to have ended by itself (Unix, ms).",
        TIME,
        journaled=True,
    ),
    Field(
        DECISION,
        PLACEMENT,
        "The token that names the decision on several places that it is one of; absent if it was decided alone.",
    ),
    Field("resized_from", PLACEMENT, "The token before the last resize.", TOKEN, journaled=True),
    Field("amount", PLACEMENT, "The amount that it holds of a slot.", journaled=True, family="slot"),
    Field(
        "resizing_to",
        PLACEMENT,
        "The amount that it will hold of a slot once its host has resized it.",
        journaled=True,
        family="slot",
    ),
    Field(
        "counted",
        PLACEMENT,
        "The zone or label value under which its server group counts it.",
        journaled=True,
        family="topology",
    ),
)


def lua_tables() -> str:
    """Return the table as Lua: PLAIN_FIELDS of a placement, and the fields that SURVIVE the end of a claim."""
    plain = (one.name for one in FIELDS if one.of == PLACEMENT and not one.family)
    survive = (one.name for one in FIELDS if one.of == CLAIM and one.survives and not one.family)
    tables = (("PLAIN_FIELDS", plain), ("SURVIVE", survive))
    lists = "".join(f"local {name} = {_set(names)}\n" for name, names in tables)
    return f"-- From redsched/store/codec/claim_fields.py.\n{lists}"


def _set(names: Iterable[str]) -> str:
    pairs = [f"['{name}'] = true" for name in names]
    lines = [", ".join(pairs[first : first + 4]) for first in range(0, len(pairs), 4)]
    return "{" + ",\n  ".join(lines) + "}"


_CARRIED = {one.name: one for one in FIELDS if one.carried}
_CARRIED_BY_REQUEST = tuple(name for name in _CARRIED if hasattr(Request, name))


def carried(**values: Any) -> dict[str, str]:
    """Return carried fields as a claim stores them, without those that have the value of an absent field."""
    found = dict[str, str]()
    for name, value in values.items():
        one = _CARRIED[name]
        text = one.kind.write(value) if one.kind else str(value)
        if text != one.absent:
            found[name] = text
    return found


def carried_by(request: Request, **of_call: Any) -> dict[str, str]:
    """Return what a request passes on to its claims. `of_call`: the values of fields that depend on the call."""
    return carried(**{name: getattr(request, name) for name in _CARRIED_BY_REQUEST} | of_call)


_SHOWN = {
    one.name: (one.name if one.attribute is None else one.attribute, one.kind.read)
    for one in FIELDS
    if one.kind and one.attribute != "" and (one.attribute or hasattr(Claim, one.name))
}


def attributes_in(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes of a claim that single fields of its hash have, without those of absent fields."""
    return {known[0]: known[1](value) for name, value in fields.items() if value and (known := _SHOWN.get(name))}


_OF_PLACEMENT = frozenset(one.name for one in FIELDS if one.of == PLACEMENT)


def is_of_placement(name: str) -> bool:
    """Return whether a field of a claim's hash belongs to its main placement, and not to the claim."""
    return name.partition(".")[0] in _OF_PLACEMENT


_JOURNALED = frozenset(one.name for one in FIELDS if one.journaled and one.of == CLAIM)
_JOURNALED_PLAIN = frozenset(one.name for one in FIELDS if one.journaled and one.of == PLACEMENT and not one.family)


def record_of(claim: Claim) -> dict[str, str]:
    """Return the part of a claim that agents keep for the store: fields as in the hash, of the placement shown."""
    record = {name: value for name, value in claim.raw.items() if name.partition(".")[0] in _JOURNALED}
    record |= {f"counted.{topology}": domain for topology, domain in claim.counted.items()}
    is_main = claim.raw.get("placed", claim.raw.get("token")) == claim.placed
    prefix = "" if is_main else f"placement.{claim.placed}."
    record |= {name: claim.raw[prefix + name] for name in _JOURNALED_PLAIN if prefix + name in claim.raw}
    if claim.state is ClaimStatus.CLAIMED and claim.expires_at_ms is not None:
        record[EXPIRES_AT_MS] = str(claim.expires_at_ms)
    return record_with(record, claim.slots, claim.resizing_to)


def record_with(record: Mapping[str, str], amounts: Amounts, resizing_to: Amounts) -> dict[str, str]:
    """Return a record as from `record_of`, with other amounts."""
    others = {name: value for name, value in record.items() if name.partition(".")[0] not in (AMOUNT, RESIZING_TO)}
    return others | _fields(AMOUNT, amounts) | _fields(RESIZING_TO, resizing_to)


def texts_of(claim_id: str, record: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the long texts that a claim's hash, or a record of `record_of`, refers to."""
    digest = record.get("digest", "")
    names = (request_name(digest),) if digest and digest != LOCAL else ()
    return (*names, alternates_name(claim_id)) if has_alternates(record) else names


def request_name(digest: str) -> str:
    """Return the name of a request's text."""
    return f"{REQUEST}:{digest}"


def alternates_name(claim_id: str) -> str:
    """Return the name of the text that lists a claim's alternates."""
    return f"{ALTERNATES}:{claim_id}"


def decision_name(placement: Mapping[str, str]) -> str:
    """Return the name of the text that says how the host of a placement with these fields was chosen."""
    return f"{DECISION}:{placement.get(DECISION) or placement.get('placed') or placement.get('token', '')}"


def has_alternates(record: Mapping[str, str]) -> bool:
    """Return whether a claim's hash, or a record of `record_of`, refers to a list of alternates."""
    return ALTERNATES in record


def alternates_text(hosts: Iterable[str]) -> str:
    """Return a list of alternates as it is stored."""
    return " ".join(hosts)


def alternates_from(text: str) -> tuple[str, ...]:
    """Return the alternates in a stored list, in their order."""
    return tuple(text.split())


def amounts_in(record: Mapping[str, str], family: str) -> dict[str, int]:
    """Return the AMOUNT or RESIZING_TO amounts in a record of `record_of`, by slot."""
    pairs = ((name.partition("."), value) for name, value in record.items())
    return {slot: parse_int(value, 0) for (name, _, slot), value in pairs if name == family}


def _fields(family: str, amounts: Amounts) -> dict[str, str]:
    return {f"{family}.{slot}": str(min(amount, MAX_AMOUNT)) for slot, amount in amounts.items()}
