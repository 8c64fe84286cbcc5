"""Applying the feed: which changes of a batch can be applied, and which objects must be read again for it.

Each rule prevents one way of misreading the feed (docs/architecture.md, "Feed"). The seq is dense, so a missing one is
a gap. An object's version is dense, so a skipped one means that this object alone must be read again. The entries of
one script are only applied together. The rules are the same for hosts and declared objects.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import Change

if TYPE_CHECKING:
    from redsched.cache.columns import Columns

KINDS = frozenset(Kind)
"""The known kinds. Changes of a kind that this release does not know are skipped, not errors."""


class Gap(Exception):
    """Entries are missing between those already applied and the oldest that the feed still has."""


def whole_scripts(changes: Sequence[Change]) -> Sequence[Change]:
    """Return the longest prefix of the batch that ends with the last entry of a script."""
    for end in range(len(changes), 0, -1):
        if changes[end - 1].more == 0:
            return changes[:end]
    return ()


def check_dense(changes: Sequence[Change], seq: int) -> None:
    """Raise Gap unless the batch continues from `seq` without a missing entry."""
    for expected, change in enumerate(changes, seq + 1):
        if change.seq != expected:
            raise Gap(f"expected entry {expected}, found {change.seq}")


ObjectName = tuple[str, str]
"""The kind and the name of a changed object."""


def objects_to_read(columns: "Columns", changes: Sequence[Change]) -> list[ObjectName]:
    """Return the objects that the batch alone cannot update: new ones, and those with a skipped version."""
    versions: dict[ObjectName, int | None] = {}
    unclear: dict[ObjectName, None] = {}
    for change in changes:
        if change.kind not in KINDS:
            continue
        named = (change.kind, change.name)
        known = versions[named] if named in versions else _version(columns, change)
        if change.op == "removed":
            versions[named] = None
            unclear.pop(named, None)
            continue
        if known is None or change.version > known + 1 or (change.version > known and "reread" in change.fields):
            unclear[named] = None
        versions[named] = change.version if known is None else max(known, change.version)
    return list(unclear)


def apply(columns: "Columns", changes: Sequence[Change]) -> None:
    """Apply a batch, after `objects_to_read` were read. Does not await, so that no reader sees only a part of it."""
    for change in changes:
        if change.kind in KINDS:
            _apply_one(columns, change)


def _version(columns: "Columns", change: Change) -> int | None:
    if change.kind == Kind.HOST:
        return columns.version(change.name)
    return columns.declared.version(change.kind, change.name)


def _apply_one(columns: "Columns", change: Change) -> None:
    known = _version(columns, change)
    if known is None or change.version <= known:
        return
    fields = {**change.fields, "version": str(change.version)}
    if change.kind == Kind.HOST:
        columns.remove(change.name) if change.op == "removed" else columns.patch(change.name, fields)
    elif change.op == "removed":
        columns.declared.remove(change.kind, change.name)
    else:
        columns.declared.patch(change.kind, change.name, fields)
