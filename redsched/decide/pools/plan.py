"""Which places of a layout could give which part of a request: what options.py works out, and a demand keeps."""

from dataclasses import dataclass

from redsched.cache.pool_tree import PoolTree

ROOT = 0
"""The host's own place comes first, then its pools, then the shared ones."""
NO_NODE = -1


@dataclass(frozen=True, slots=True)
class Option:
    """A place that could give a part: `takes` is (slot, amount) by the slot's index.

    `node` is the index of the NUMA node that the place lies in, or NO_NODE; `covers` has a bit for each want of the
    request that the place's traits meet.
    """

    place: int
    takes: tuple[tuple[int, int], ...]
    node: int
    covers: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of every part. Places and slots go by their index here.

    `above` has a bit for each place that one lies in, and for itself. `slots_of` is by place. `twins` is equal for
    places that nothing but their amounts can tell apart, and -1 where a place is like no other. `class_of` is by slot;
    `shared_slots` are not the host's own. `of_root` are the parts with traits, which the host must be asked for before
    its root may give them: a layout does not know those.
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


Plans = dict[tuple[PoolTree, int, tuple[str, ...]], Plan]
"""By the layout, the revision of what operators declared (0 without shared pools), and the shared pools."""
