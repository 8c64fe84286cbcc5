"""Plans: which places of a layout could give which part of a request. Built by options.py, cached in the demand."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from redsched.cache.pool_tree import PoolTree
from redsched.model import Amounts

ROOT = 0
"""The index of the host's own place; its pools follow, then the shared ones."""
NO_NODE = -1


@dataclass(frozen=True, slots=True)
class Option:
    """A place that could give a part: `takes` is (slot, amount) by the slot's index.

    `node` is the index of the NUMA node that contains the place, or NO_NODE; `covers` has a bit for each want of the
    request that the place's traits meet.
    """

    place: int
    takes: tuple[tuple[int, int], ...]
    node: int
    covers: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of every part. Places and slots are identified by index.

    `above` has, by place, a bit for each place that contains it, and for itself. `slots_of` is by place. `twins` is
    equal for places that differ in nothing but their amounts, and -1 for a place that no other resembles. `class_of` is
    by slot; `shared_slots` are not the host's own. `of_root` are the parts with traits, which must be tested on the
    host before its root may give them, as a layout does not have the host's traits. `sockets` has, by NUMA node, a bit
    for each node of its socket; for itself alone if the socket of some node is unknown. `found` are the assignments of
    hosts searched before, by all that determines them: hosts with equal amounts have equal assignments.
    """

    layout: PoolTree
    places: tuple[str, ...]
    slots: tuple[str, ...]
    options: tuple[tuple[Option, ...], ...]
    above: tuple[int, ...]
    slots_of: tuple[tuple[int, ...], ...]
    twins: tuple[int, ...]
    class_of: tuple[str, ...]
    shared_slots: tuple[int, ...]
    of_root: tuple[int, ...]
    sockets: Mapping[int, int]
    found: dict[Hashable, list[Amounts]] = field(default_factory=dict, compare=False, repr=False)


Plans = dict[tuple[PoolTree, int, tuple[str, ...]], Plan]
"""By the layout, the revision of the declared objects (0 without shared pools), and the shared pools."""
