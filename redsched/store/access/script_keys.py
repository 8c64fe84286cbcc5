"""The kinds of keys that each script is called with: those that its header names, and those of its further keys.

A kind is named after the member of `Keys` that returns its keys. Servers check the declared keys of a call before it
runs, and assume that a script which may write does write each of them.
"""

from collections.abc import Mapping

from redsched.store.client.scripts import load_all

_OBJECTS = frozenset({"host", "claims", "inbox", "server_group", "pool", "gang", "quota"})
"""What counts a claim, wherever its placements are: `Keys.object_keys`."""
_REASON = _OBJECTS | {"reason"}
_PLACING = _OBJECTS | {"claim", "attributes", "alternates", "request"}

KINDS_OF_FURTHER_KEYS: Mapping[str, frozenset[str]] = {
    "accept": _OBJECTS,
    "attest": _OBJECTS | {"claim"},
    "audit": frozenset({"claim"}),
    "claim": _PLACING,
    "confirm": _OBJECTS,
    "down": frozenset({"host"}),
    "fail": _REASON,
    "forget": _OBJECTS | {"claim"},
    "gone": _REASON,
    "inbox": frozenset({"inbox"}),
    "local": _OBJECTS,
    "membership": frozenset({"host"}),
    "reconcile": _REASON | {"claim"},
    "release": _REASON,
    "renew": _OBJECTS,
    "report": frozenset({"claim", "server_group"}),
    "repair_counts": frozenset({"claim", "server_group", "pool", "quota"}),
    "repair_due": frozenset({"claim"}),
    "repair_gang": frozenset({"claim"}),
    "repair_gone_host": _OBJECTS | {"claim"},
    "repair_host": frozenset({"claim"}),
    "repair_members": frozenset({"claim", "server_group"}),
    "replace": _PLACING,
    "resize": _REASON,
    "resized": _OBJECTS,
    "restore": _OBJECTS | {"claim"},
    "stop_failed": _REASON,
    "work_ended": _REASON,
}
"""The kinds behind `...` in a header's line of KEYS; the tests compare them with the keys of every call."""

_OF_HEADER: Mapping[str, frozenset[str]] = {
    "binding": frozenset({"binding", "group_pin"}),
    "names": frozenset({"aggregates", "server_groups", "pools", "quotas"}),
    "object": frozenset({"aggregate", "server_group", "pool", "quota"}),
    "text": frozenset({"request", "alternates"}),
}
"""Names in headers that stand for keys of several kinds."""


def kinds_of(script: str) -> frozenset[str]:
    """Return the kinds of the keys that calls of a script declare."""
    named = (_of_header(name) for name in load_all()[script].keys.names)
    return KINDS_OF_FURTHER_KEYS.get(script, frozenset()).union(*named)


def _of_header(name: str) -> frozenset[str]:
    """Return the kinds of a key that a header names: `text_probe` is a `probe`."""
    return _OF_HEADER.get(name) or frozenset({name.rpartition("_")[2]})
