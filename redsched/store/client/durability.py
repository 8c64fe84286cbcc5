"""Durability: waiting until replicas or the primary's disk have what a script wrote.

WAIT and WAITAOF cover only the writes of their own connection. They are therefore sent after the scripts, on the same
connection, preceded by `touch.lua`, which always writes: a script that found its work already done has written nothing,
so without that write WAIT would not cover the earlier writes on which the script's reply is based.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from redsched.errors import StoreUnavailable
from redsched.settings import Settings
from redsched.store.topology.url import without_password

_WAITAOF = {"redis": (7, 2), "valkey": (8, 0)}


@dataclass(frozen=True, slots=True)
class Durability:
    """How many replicas must have the writes, and whether the disk must. With neither, replies are not delayed."""

    replicas: int = 0
    fsync: bool = False
    timeout_ms: int = 0

    def __bool__(self) -> bool:
        return bool(self.replicas or self.fsync)

    @property
    def commands(self) -> tuple[tuple[str | int, ...], ...]:
        """The commands sent after the scripts, on the same connection."""
        wait = ("WAIT", self.replicas, self.timeout_ms)
        wait_aof = ("WAITAOF", 1, 0, self.timeout_ms)
        return (*([wait] if self.replicas else []), *([wait_aof] if self.fsync else []))

    def shortfall(self, replies: Sequence[Any]) -> str:
        """Return what is missing according to the replies to `commands`; '' if nothing is."""
        replies_by_name = dict(zip((str(command[0]) for command in self.commands), replies, strict=True))
        missing = []
        if self.replicas:
            missing.append(_counted("replicas that have it", replies_by_name["WAIT"], self.replicas))
        if self.fsync:
            disks = (
                replies_by_name["WAITAOF"]
                if isinstance(replies_by_name["WAITAOF"], Exception)
                else replies_by_name["WAITAOF"][0]
            )
            missing.append(_counted("disks that have it", disks, 1))
        return ", ".join(filter(None, missing))


def durability_of(settings: Settings) -> Durability:
    """Return the durability that the settings require. Their syntax has been checked."""
    options = dict(word.partition("=")[::2] for word in settings.durability.split(","))
    return Durability(int(options.get("replicas", 0)), "fsync" in options, round(settings.durability_timeout_s * 1000))


def check_fsync(url: str, name: str, version: tuple[int, ...], persistence: Mapping[str, Any]) -> None:
    """Raise StoreUnavailable if a server cannot confirm writes to disk. `persistence`: that section of its INFO."""
    where = without_password(url)
    if version < _WAITAOF[name]:
        raise StoreUnavailable(
            f"REDSCHED_DURABILITY requires fsync, but the store at {where} has no WAITAOF: "
            "it needs Redis 7.2, Valkey 8 or newer"
        )
    if not int(persistence.get("aof_enabled", 0)):
        raise StoreUnavailable(
            f"REDSCHED_DURABILITY requires fsync, but the store at {where} keeps no append-only file: "
            "set appendonly yes, with appendfsync always or everysec"
        )


def _counted(what: str, reply: Any, wanted: int) -> str:
    if isinstance(reply, ResponseError):
        return f"{what}: {reply}"
    return "" if int(reply) >= wanted else f"{what}: {reply} of {wanted}"
