"""Tags: digests of what operators declare; a conditional write names the tag of the state that it is based on.

The scripts compute the same tags (definition_tag.lua, operator_tag.lua), so that comparing and writing are one step.
"""

from collections.abc import Mapping

from redsched.model.conditions import ABSENT, Existence, IfMatch
from redsched.store.codec.fields import WRITTEN_OFF, digest

_COUNTED = ("version", "members", "count", "claimed", "external", "over", "used", "seq", "broken")
_OF_DIVISION = ("division", "closed_at_ms", "share_epoch", "share", "given", "handed", "taken", "heard")
_NOT_DECLARED = frozenset((*_COUNTED, *_OF_DIVISION))
_OF_OPERATORS = ("status", "draining", "drain_deadline_ms", "drain_then")


def definition_tag(fields: Mapping[str, str]) -> str | None:
    """Return the tag of an aggregate, server group, shared pool or quota; None if it is not declared."""
    declared = ((field, value) for field, value in fields.items() if is_definition(field))
    entries = sorted((digest(f"{field}\0{value}") for field, value in declared), key=lambda one: int(one[:12], 16))
    return digest("".join(entries)) if entries else None


def is_definition(field: str) -> bool:
    """Return whether operators declare this field: claims and the division of a quota do not change it."""
    return field.partition(".")[0] not in _NOT_DECLARED


def operator_tag(fields: Mapping[str, str]) -> str:
    """Return the tag of what operators set on a host; its reports and claims do not affect it."""
    lost = WRITTEN_OFF if fields.get("epoch") == WRITTEN_OFF else ""
    reason = fields.get("status_reason", "")
    return digest("\0".join((*(fields.get(name, "") for name in _OF_OPERATORS), lost, *([reason] if reason else []))))


def is_match(wanted: IfMatch, tag: str) -> bool:
    """Return whether an object with this tag may be written."""
    if wanted is None or isinstance(wanted, Existence):
        return wanted is not ABSENT
    return tag in ((wanted,) if isinstance(wanted, str) else wanted)


def as_argument(wanted: IfMatch) -> str:
    """Return a condition in the form that if_match.lua takes."""
    if wanted is None:
        return ""
    if isinstance(wanted, Existence):
        return wanted.value
    return "".join(f" {tag}" for tag in ((wanted,) if isinstance(wanted, str) else wanted)) or " "
