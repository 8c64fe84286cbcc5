"""ACL rules of a user of the store, for Redis 7.0 or newer and Valkey.

Nothing is granted by category, because each release of a server decides what its categories contain.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redsched.errors import InvalidRequest
from redsched.settings import Settings
from redsched.store.access.key_kinds import CELLS, HOME, IN_ORDER, OF_CELL, pattern_of, pattern_of_cell
from redsched.store.access.roles import StoreRole, Work, work_of
from redsched.store.client.durability import durability_of
from redsched.store.topology.url import Kind, parse

PLACEHOLDER = "#SHA256-OF-THE-PASSWORD"
"""A server refuses a user with this, because it is no hash."""
_CONNECTION = ("CLIENT|SETNAME",)
_CLUSTER = ("ASKING", "CLUSTER|SLOTS", "COMMAND")
_OF_ONE_HOST = frozenset({"attributes", "removed"})
"""The kinds of keys that an agent needs for its own hosts only. Scripts about a claim that moves, or whose gang ends,
are called with the keys of its other hosts."""


@dataclass(frozen=True, slots=True)
class StoreUser:
    """A user of the store. `hosts`: the only ones whose agent it is; () for any."""

    name: str
    role: StoreRole
    cells: tuple[str, ...]
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.hosts and self.role is not StoreRole.AGENT:
            raise InvalidRequest(f"a {self.role} serves all hosts of its cells: only an agent is limited to hosts")


def rules_of(user: StoreUser, settings: Settings, password: str = "") -> list[str]:
    """Return the rules of a user, for a server that the settings describe. `password`: '' for a placeholder."""
    work = work_of(user.role)
    secret = f"#{hashlib.sha256(password.encode()).hexdigest()}" if password else PLACEHOLDER
    granted = [f"+{command.lower()}" for command in sorted(_commands(work, settings))]
    return ["reset", "on", secret, "resetchannels", *_keys(user, work), *granted]


def _commands(work: Work, settings: Settings) -> Iterable[str]:
    url, durability = parse(settings.redis_url) if settings.redis_url else None, durability_of(settings)
    return {
        *work.all_commands,
        *_CONNECTION,
        *(_CLUSTER if url is not None and url.kind is Kind.CLUSTER else ()),
        *(("SELECT",) if url is not None and url.db else ()),
        *(command[0] for command in durability.commands if work.waits),
    }


def _keys(user: StoreUser, work: Work) -> Sequence[str]:
    """Return the rules about keys: of each cell, then of what belongs to none."""
    found: list[str] = []
    for cell in user.cells:
        for permission, kinds in (("%RW~", work.written), ("%R~", work.read)):
            found += (permission + one for one in _patterns(cell, kinds, user.hosts))
    for permission, kinds in (("%RW~", work.written), ("%R~", work.read)):
        outside = sorted(kinds - OF_CELL if len(user.cells) > 1 else kinds & {CELLS, HOME})
        found += (permission + one for kind in outside for one in _outside(kind, user.hosts))
    return found


def _outside(kind: str, hosts: Sequence[str]) -> Iterable[str]:
    """Return the globs of a kind that belongs to no cell."""
    return (pattern_of("", kind, name) for name in (hosts if kind == HOME and hosts else ("*",)))


def _patterns(cell: str, kinds: frozenset[str], hosts: Sequence[str]) -> Iterable[str]:
    """Return the globs of some kinds of a cell: one for all of them, if these are all of its kinds."""
    if kinds >= OF_CELL:
        return [pattern_of_cell(cell)]
    wanted = [kind for kind in IN_ORDER if kind in kinds]
    names = {kind: hosts or ("*",) if kind in _OF_ONE_HOST else ("*",) for kind in wanted}
    return [pattern_of(cell, kind, name) for kind in wanted for name in names[kind]]
