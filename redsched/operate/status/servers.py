"""The servers of a store, from INFO, and what is wrong with them."""

from collections.abc import Iterator, Mapping
from typing import Any

from redsched.model.records.status import ServerStatus, StatusProblem
from redsched.settings import Settings
from redsched.store.client.durability import durability_of
from redsched.store.store import KEEPS, is_full
from redsched.store.topology.connection import full_text
from redsched.store.topology.router import ONLY
from redsched.wording import counted

FULL_PERCENT = 90
"""From this much of the memory limit on, a server is nearly full."""


def server_of(name: str, info: Mapping[str, Any]) -> ServerStatus:
    """Return the status of a server from all that INFO reports."""
    kind = "valkey" if "valkey_version" in info else "redis"
    is_primary = info.get("role") == "master"
    written = (info.get(one, "ok") for one in ("rdb_last_bgsave_status", "aof_last_write_status"))
    return ServerStatus(
        name="" if name == ONLY else name,
        version=f"{kind} {info[f'{kind}_version']}",
        role="primary" if is_primary else "replica",
        replicas=int(info.get("connected_slaves", 0)),
        memory_bytes=int(info.get("used_memory", 0)),
        max_memory_bytes=int(info.get("maxmemory", 0)),
        is_full=is_full(info),
        memory_policy=str(info.get("maxmemory_policy", KEEPS)),
        append_only=bool(info.get("aof_enabled")),
        saved=all(one == "ok" for one in written),
        primary="" if is_primary else f"{info.get('master_host')}:{info.get('master_port')}",
        is_linked=is_primary or info.get("master_link_status") == "up",
    )


def problems_of(server: ServerStatus, settings: Settings) -> Iterator[StatusProblem]:
    """Yield what is wrong with a server."""
    what = f"the server {server.name}".strip() if server.name else "the store"
    if server.role == "replica":
        link = "" if server.is_linked else ", and the link to it is down"
        yield StatusProblem(
            "store-replica",
            "",
            f"{what} is a replica of {server.primary}{link}: nothing can be claimed here",
            "give schedulers and agents the URL of the primary, or sentinel:// with its name",
        )
    if server.memory_policy != KEEPS:
        yield StatusProblem(
            "store-evicts",
            "",
            f"{what} has the maxmemory-policy {server.memory_policy}, which drops claims when memory is short",
            "set it, also in the configuration of the server",
            ("redis-cli CONFIG SET maxmemory-policy noeviction",),
        )
    if server.is_full:
        yield StatusProblem(
            "store-full",
            "",
            f"{what} is out of memory{full_text(server.memory_bytes, server.max_memory_bytes)} and refuses claims "
            "and all else that is new",
            "release or shelve claims, and remove hosts: these still work; or raise maxmemory "
            "(docs/howto/size-the-store.md)",
            ("redsched claim list", f"redis-cli CONFIG SET maxmemory {_enough(server)}"),
        )
    elif server.max_memory_bytes and 100 * server.memory_bytes >= FULL_PERCENT * server.max_memory_bytes:
        yield StatusProblem(
            "store-full",
            "",
            f"{what} uses {100 * server.memory_bytes // server.max_memory_bytes} % of its memory limit: at 100 % it "
            "refuses claims",
            "raise maxmemory, or end claims (docs/howto/size-the-store.md)",
        )
    if not server.saved:
        yield StatusProblem(
            "store-not-saved",
            "",
            f"{what} could not write to its disk the last time",
            "look at its log and at the free space of its disk",
            ("redis-cli INFO persistence",),
        )
    yield from _missing_replicas(server, what, durability_of(settings).replicas)


def _enough(server: ServerStatus) -> str:
    """Return a limit that leaves a full server room for half as much again, as it reads it."""
    most = max(server.memory_bytes, server.max_memory_bytes)
    return f"{-(-most * 3 // 2**21)}mb"


def _missing_replicas(server: ServerStatus, what: str, wanted: int) -> Iterator[StatusProblem]:
    if server.role == "primary" and server.replicas < wanted:
        yield StatusProblem(
            "store-replicas",
            "",
            f"{what} has {counted(server.replicas, 'replica')}, and REDSCHED_DURABILITY makes claims wait for {wanted}",
            "start the replicas, or lower REDSCHED_DURABILITY",
            ("redis-cli INFO replication",),
        )
