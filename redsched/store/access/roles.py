"""What each role does with the store: the scripts that it runs, and what it reads and writes without a script."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from redsched.store.access.key_kinds import BETWEEN_CELLS, CELLS, OF_CELL
from redsched.store.access.script_commands import commands_in, commands_of
from redsched.store.access.script_keys import kinds_of
from redsched.store.client.function_library import library
from redsched.store.client.scripts import load_all


class StoreRole(StrEnum):
    """The role of a user of the store."""

    SCHEDULER = "scheduler"
    AGENT = "agent"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Work:
    """What a role does. `reads` and `writes`: kinds of keys; `commands`: those that it sends itself, not in scripts."""

    scripts: frozenset[str]
    commands: frozenset[str]
    reads: frozenset[str] = field(default_factory=frozenset)
    writes: frozenset[str] = field(default_factory=frozenset)
    waits: bool = False
    """Whether it waits for replicas or a disk, if the settings require durability."""

    @property
    def writing_scripts(self) -> frozenset[str]:
        """The scripts that may write."""
        return frozenset(one for one in self.scripts if not load_all()[one].read_only)

    @property
    def written(self) -> frozenset[str]:
        """The kinds of keys that it may write: a server assumes that a script writes each key of its call."""
        return self.writes.union(*map(kinds_of, self.writing_scripts))

    @property
    def read(self) -> frozenset[str]:
        """The kinds of keys that it only reads."""
        return self.reads.union(*map(kinds_of, self.scripts)) - self.written

    @property
    def all_commands(self) -> frozenset[str]:
        """The commands that it sends, and those that its scripts call."""
        return self.commands.union(*map(commands_of, self.scripts))


_SCRIPTS = frozenset({"EVALSHA_RO", "SCRIPT|EXISTS", "SCRIPT|LOAD"})
_AGENT_READS = frozenset({"EXISTS", "GET", "HGETALL", "HMGET", "SISMEMBER", "SMEMBERS", "XRANGE", "ZRANGE"})
_FUNCTIONS = commands_in(library().text) | {"FCALL_RO"}
"""What it takes to call the functions for redis-cli: a server checks each command inside them."""
_READS = _AGENT_READS | _FUNCTIONS | {"HGET", "PTTL", "SCAN", "SSCAN", "XREVRANGE", "ZSCORE"}
_SERVER = frozenset({"INFO", "TIME"})

_AGENT_SCRIPTS = frozenset(
    {
        *("accept", "attest", "bind_host", "confirm", "fail", "gone", "heartbeat", "inbox", "keep", "local", "probe"),
        *("raise_epoch", "renew", "report", "resized", "schema", "stop_failed", "tick", "work_ended"),
    }
)


@cache
def work_of(role: StoreRole) -> Work:
    """Return what a role does."""
    match role:
        case StoreRole.SCHEDULER:
            commands = _READS | _SERVER | _SCRIPTS | {"EVALSHA", "SADD", "SET", "PEXPIRE", "DEL"}
            return Work(frozenset(load_all()), commands, OF_CELL, BETWEEN_CELLS | {CELLS, "decision"}, waits=True)
        case StoreRole.AGENT:
            reads = frozenset({"meta", "changes", "deadlines", "claims", "claim", "request", "alternates", CELLS})
            return Work(_AGENT_SCRIPTS, _AGENT_READS | _SERVER | _SCRIPTS | {"EVALSHA"}, reads)
        case StoreRole.READER:
            scripts = frozenset(one.name for one in load_all().values() if one.read_only)
            return Work(scripts, _READS | _SERVER | _SCRIPTS, OF_CELL | BETWEEN_CELLS)
