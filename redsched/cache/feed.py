"""Applying the feed: which of a batch of changes can be applied, and which hosts have to be read anew for it.

The rules, each for a way in which a reader can be misled (docs/architecture.md, "Feed"): seq is dense, so a missing one
is a gap; a host's version is dense, so a skipped one means that this host alone is read again; the entries of one
script are applied together or not yet.
"""

from collections.abc import Sequence

from redsched.cache.columns import Columns
from redsched.store import Change


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


def hosts_to_read(columns: Columns, changes: Sequence[Change]) -> list[str]:
    """Hosts that cannot be brought up to date from the batch alone: new ones, and ones whose version skips."""
    versions: dict[str, int | None] = {}
    unclear: dict[str, None] = {}
    for change in changes:
        if change.kind != "host":
            continue
        known = versions[change.name] if change.name in versions else columns.version(change.name)
        if change.op == "removed":
            versions[change.name] = None
            unclear.pop(change.name, None)
            continue
        if known is None or change.version > known + 1 or (change.version > known and "reread" in change.fields):
            unclear[change.name] = None
        versions[change.name] = change.version if known is None else max(known, change.version)
    return list(unclear)


def apply(columns: Columns, changes: Sequence[Change]) -> None:
    """Apply a batch, after the hosts of `hosts_to_read` have been put. Does not wait, so no reader sees half of it."""
    for change in changes:
        if change.kind == "host":
            _apply_to_host(columns, change)


def _apply_to_host(columns: Columns, change: Change) -> None:
    known = columns.version(change.name)
    if known is None or change.version <= known:
        return
    if change.op == "removed":
        columns.remove(change.name)
    else:
        columns.patch(change.name, {"version": str(change.version), **change.fields})
