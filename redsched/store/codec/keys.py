"""All keys of redsched. Keys are built nowhere else; docs/keys.md describes their contents.

All keys of a cell carry the hash tag `{cell}`, so that one script can touch any of them on one cluster shard.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

CELLS = "rs:cells"


class Kind(StrEnum):
    """The kinds of objects in the feed. Each is also the prefix of the object's key, after the cell."""

    HOST = "host"
    AGGREGATE = "aggregate"
    SERVER_GROUP = "server-group"
    POOL = "pool"
    QUOTA = "quota"


@lru_cache(maxsize=16_384)
def _of_host(prefix: str, name: str) -> tuple[str, str, str]:
    # Cached: each claim call names eight hosts, and mostly the same ones, the best of a fleet.
    return f"{prefix}host:{name}", f"{prefix}claims:{name}", f"{prefix}inbox:{name}"


class Keys:
    """The keys of one cell."""

    __slots__ = (
        "_prefix",
        "aggregates",
        "audit",
        "changes",
        "deadlines",
        "draining",
        "due",
        "events",
        "expected",
        "fencing",
        "head",
        "hosts",
        "meta",
        "missing",
        "pools",
        "quotas",
        "reconcile",
        "recorder",
        "refused",
        "reservations",
        "schedulers",
        "server_groups",
        "shelved",
        "workload",
    )

    def __init__(self, cell: str) -> None:
        self._prefix = f"rs:{{{cell}}}:"
        self.meta = f"{self._prefix}meta"
        self.changes = f"{self._prefix}changes"
        self.hosts = f"{self._prefix}hosts"
        self.deadlines = f"{self._prefix}deadlines"
        self.reconcile = f"{self._prefix}reconcile"
        self.draining = f"{self._prefix}draining"
        self.shelved = f"{self._prefix}shelved"
        self.events = f"{self._prefix}events"
        self.recorder = f"{self._prefix}recorder"
        self.reservations = f"{self._prefix}reservations"
        self.workload = f"{self._prefix}workload"
        self.schedulers = f"{self._prefix}schedulers"
        self.missing = f"{self._prefix}missing"
        self.audit = f"{self._prefix}audit"
        self.fencing = f"{self._prefix}fencing"
        self.expected = f"{self._prefix}expected"
        self.refused = f"{self._prefix}refused"
        self.aggregates = f"{self._prefix}aggregates"
        self.server_groups = f"{self._prefix}server-groups"
        self.pools = f"{self._prefix}pools"
        self.quotas = f"{self._prefix}quotas"
        self.head = (self.meta, self.changes, self.hosts)
        """The keys that the fence needs: KEYS 1 to 3 of every writing script."""
        self.due = (self.deadlines, self.reconcile, self.shelved)
        """KEYS 4 to 6 of every script that creates or changes claims."""

    def host(self, name: str) -> str:
        """Hash: the host's state and its slots."""
        return f"{self._prefix}host:{name}"

    def of_host(self, name: str) -> tuple[str, str, str]:
        """Return the keys of a host, its set of claims and its inbox."""
        return _of_host(self._prefix, name)

    def attributes(self, name: str) -> str:
        """Hash: the host's traits, labels and metrics."""
        return f"{self._prefix}attributes:{name}"

    def removed(self, host: str) -> str:
        """String: for a host that was removed by force, the token up to which its placements are lost."""
        return f"{self._prefix}removed:{host}"

    def claims(self, host: str) -> str:
        """Set: the ids of the claims on a host."""
        return f"{self._prefix}claims:{host}"

    def inbox(self, host: str) -> str:
        """Stream: notifications for the host's agent; absent while there are none."""
        return f"{self._prefix}inbox:{host}"

    def claim(self, claim_id: str) -> str:
        """Hash: a claim, or the tombstone of an ended one."""
        return f"{self._prefix}claim:{claim_id}"

    def reason(self, claim_id: str) -> str:
        """Hash: why a claim failed, expired or lost its work, as text."""
        return f"{self._prefix}reason:{claim_id}"

    def gang(self, gang_id: str) -> str:
        """Hash: the members of a gang, until all of them are active."""
        return f"{self._prefix}gang:{gang_id}"

    def request(self, digest: str) -> str:
        """String: a request as canonical JSON."""
        return f"{self._prefix}request:{digest}"

    def alternates(self, claim_id: str) -> str:
        """String: the alternates of a claim, best first, separated by spaces."""
        return f"{self._prefix}alternates:{claim_id}"

    def decision(self, token: str) -> str:
        """String: how the host of the placement with this first token was chosen, and those of the same call."""
        return f"{self._prefix}decision:{token}"

    def text(self, name: str) -> str:
        """Return the key of a text named as its key ends: `request:<digest>`, `alternates:<claim id>` ..."""
        return f"{self._prefix}{name}"

    def aggregate(self, name: str) -> str:
        """Hash: an aggregate's metadata. Membership is stored on the host records."""
        return f"{self._prefix}aggregate:{name}"

    def server_group(self, name: str) -> str:
        """Hash: a server group, and the number of its members in each domain."""
        return f"{self._prefix}server-group:{name}"

    def pool(self, name: str) -> str:
        """Hash: a shared pool and its slots."""
        return f"{self._prefix}pool:{name}"

    def shared_object(self, kind: str, name: str) -> str:
        """Return the key of an object that claims count in: a `server-group`, `pool` or `gang`."""
        return f"{self._prefix}{kind}:{name}"

    def object_keys(self, names: Iterable[str]) -> list[str]:
        """Return the keys of objects named as their keys end: `server-group:web`, `pool:licences`, `gang:a`, `host:h1`.

        A host comes with its set of claims and its inbox.
        """
        found: list[str] = []
        for name in names:
            kind, _, own = name.partition(":")
            found += self.of_host(own) if kind == "host" else (self.shared_object(kind, own),)
        return found

    def duty(self, duty: str) -> str:
        """String: the scheduler that holds the lease on a duty."""
        return f"{self._prefix}duty:{duty}"

    def quota(self, project: str) -> str:
        """Hash: the limits of a project, and the usage of its claims in this cell."""
        return f"{self._prefix}quota:{project}"

    def binding(self, claim_id: str) -> str:
        """String: with several cells, the cell to which a caller's own id is bound. This key belongs to no cell."""
        return f"rs:{{claim:{claim_id}}}"

    def home(self, host: str) -> str:
        """String: with several cells, the cell to which a host's name is bound. This key belongs to no cell."""
        return f"rs:{{host:{host}}}"

    def group_pin(self, group: str) -> str:
        """String: with several cells, the cell to which a server group is pinned. This key belongs to no cell."""
        return f"rs:{{server-group:{group}}}"

    def probe(self, number: int) -> str:
        """Return a scratch key of probe.lua, which deletes it."""
        return f"{self._prefix}probe:{number}"
