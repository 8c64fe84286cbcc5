"""Applying the feed: which of a batch of changes can be applied, and which objects have to be read anew for it.

The rules, each for a way in which a reader can be misled (docs/architecture.md, "Feed"): seq is dense, so a missing one
is a gap; a thing's version is dense, so a skipped one means that this thing alone is read again; the entries of one
script are applied together or not yet. They are the same for hosts and for what operators declare.
"""

from collections.abc import Sequence

from redsched.cache.columns import Columns
from redsched.store.codec.keys import Kind
from redsched.store.codec.results import Change

KINDS = frozenset(Kind)
"""A kind that this release does not know is no reason to stop: its changes are passed over."""


class Gap(Exception):
    """An entry is missing between what was applied and what the feed still has."""


def whole_scripts(changes: Sequence[Change]) -> Sequence[Change]:
    """The longest beginning of the batch that ends where a script ended."""
    for end in range(len(changes), 0, -1):
        if changes[end - 1].more == 0:
            return changes[:end]
    return ()


def check_dense(changes: Sequence[Change], seq: int) -> None:
    """Raise Gap unless the batch goes on from `seq` without a hole."""
    for expected, change in enumerate(changes, seq + 1):
        if change.seq != expected:
            raise Gap(f"expected entry {expected}, found {change.seq}")


Thing = tuple[str, str]
"""The kind and the name of what a change is about."""


def things_to_read(columns: Columns, changes: Sequence[Change]) -> list[Thing]:
    """What cannot be brought up to date from the batch alone: new objects, and ones whose version skips."""
    versions: dict[Thing, int | None] = {}
    unclear: dict[Thing, None] = {}
    for change in changes:
        if change.kind not in KINDS:
            continue
        thing = (change.kind, change.name)
        known = versions[thing] if thing in versions else _version(columns, change)
        if change.op == "removed":
            versions[thing] = None
            unclear.pop(thing, None)
            continue
        if known is None or change.version > known + 1 or (change.version > known and "reread" in change.fields):
            unclear[thing] = None
        versions[thing] = change.version if known is None else max(known, change.version)
    return list(unclear)


def apply(columns: Columns, changes: Sequence[Change]) -> None:
    """Apply a batch, after `things_to_read` have been put. Does not wait, so no reader sees half of it."""
    for change in changes:
        if change.kind in KINDS:
            _apply_one(columns, change)


def _version(columns: Columns, change: Change) -> int | None:
    if change.kind == Kind.HOST:
        return columns.version(change.name)
    return columns.declared.version(change.kind, change.name)


def _apply_one(columns: Columns, change: Change) -> None:
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
