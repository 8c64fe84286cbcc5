"""The tree of a host's pools, with their classes and traits, and its canonical text.

The amounts of pools are in the columns, by slot. A tree changes only when a host's structure changes, and thousands of
hosts share one tree. So the columns keep each tree as a text with a code, and results for a tree are computed once for
all hosts that have it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from redsched.cache.arrays import natural
from redsched.model import NUMA_NODE
from redsched.model.hosts import SOCKET
from redsched.model.validation import NAME_PATTERN, split_slot
from redsched.store.codec.fields import ROOT

MAX_TREES = 8192
"""The number of cached trees; with more distinct trees than this, some are built again."""

_BUILD = re.compile(r"(?:pool\.|(?:capacity|trait)\.[^/=\s]+/)[^/=\s]+\Z")
"""The fields that describe the structure. None can contain the separator between fields."""

STRUCTURAL = frozenset(("pool", "capacity", "trait"))
"""The kinds of these fields: what precedes their first dot. Most changes have none of them."""

_NAME = re.compile(NAME_PATTERN)
_NOWHERE = "?"
"""The parent of a pool whose parent field is invalid: no pool has this name."""


@dataclass(frozen=True, eq=False, slots=True)
class PoolTree:
    """A host's tree. Equal trees are one object, so it can be a key.

    `pools` are in natural order (gpu2 before gpu10); `parent` is '' for pools directly in the host; `classes` and
    `traits` have an entry for each pool.
    """

    pools: tuple[str, ...]
    parent: Mapping[str, str]
    classes: Mapping[str, frozenset[str]]
    traits: Mapping[str, frozenset[str]]

    def above(self, pool: str) -> tuple[str, ...]:
        """Return the pools that contain a pool, nearest first, then '' for the host; () for '' itself."""
        found = []
        while pool:
            pool = self.parent[pool]
            found.append(pool)
        return tuple(found)

    def numa_node(self, pool: str) -> str | None:
        """Return the NUMA node that a pool is, or that contains it; None if there is none."""
        for one in (pool, *self.above(pool)):
            if one and NUMA_NODE in self.traits[one]:
                return one
        return None

    def socket(self, node: str) -> str | None:
        """Return the trait that names the CPU socket of a NUMA node; None if it has none, or several."""
        found = [trait for trait in self.traits[node] if trait.startswith(SOCKET)]
        return found[0] if len(found) == 1 else None


def is_structural(field: str) -> bool:
    """Return whether a field describes the structure of a host, and so its tree."""
    return _BUILD.match(field) is not None


def tree_after(tree: str, fields: Mapping[str, str]) -> str:
    """Return the text of a host's tree after some of its fields have changed ('' deletes a field).

    The text is the sorted fields `pool.gpu0=numa0`, `capacity.gpu0/CUSTOM_GPU_MILLI` and `trait.gpu0/CUSTOM_T4`.
    """
    changed = {field: _value(field, text) for field, text in fields.items() if is_structural(field)}
    if not changed:
        return tree
    facts = dict(_field(one) for one in tree.split())
    for field, value in changed.items():
        facts.pop(field, None)
        if value is not None:
            facts[field] = value
    return " ".join(sorted(f"{field}={value}" if value else field for field, value in facts.items()))


@lru_cache(MAX_TREES)
def pool_tree_of(tree: str) -> PoolTree:
    """Return the tree that a text describes."""
    facts = dict(_field(one) for one in tree.split())
    parent = {field[5:]: "" if text == ROOT else text for field, text in facts.items() if text}
    pools = tuple(sorted((pool for pool in parent if _is_rooted(pool, parent)), key=natural))
    classes, traits = _by_pool("capacity.", facts), _by_pool("trait.", facts)
    return PoolTree(
        pools,
        {pool: parent[pool] for pool in pools},
        {pool: classes.get(pool, frozenset()) for pool in pools},
        {pool: traits.get(pool, frozenset()) for pool in pools},
    )


def _value(field: str, text: str) -> str | None:
    """Return the value of a field in the text; None if the field is deleted."""
    if field.startswith("pool."):
        return (text if text == ROOT or _NAME.match(text) else _NOWHERE) if text else None
    return "" if text and (text == "1" or field.startswith("capacity.")) else None


def _field(text: str) -> tuple[str, str]:
    field, _, value = text.partition("=")
    return field, value


def _is_rooted(pool: str, parent: Mapping[str, str]) -> bool:
    """Return whether a pool's chain of parents leads to the host. If not, its fields are invalid and it is unusable."""
    seen = set()
    while pool:
        if pool in seen or pool not in parent:
            return False
        seen.add(pool)
        pool = parent[pool]
    return True


def _by_pool(kind: str, facts: Iterable[str]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pool, name in _named(kind, facts):
        found.setdefault(pool, set()).add(name)
    return {pool: frozenset(names) for pool, names in found.items()}


def _named(kind: str, facts: Iterable[str]) -> Iterator[tuple[str, str]]:
    return (split_slot(field[len(kind) :]) for field in facts if field.startswith(kind))
