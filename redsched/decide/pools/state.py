"""The state of a search: where units are placed so far, what is left, and what is allowed. Chooses nothing."""

from redsched.decide.pools.demand import Part, PoolDemand, Sort
from redsched.decide.pools.inventory import FreeSlots
from redsched.decide.pools.plan import NO_NODE, Option, Plan
from redsched.model import NumaAffinity

Masks = tuple[int, int, int]


class SearchState:
    """One host while its parts are placed. Places and slots are by index in the plan, parts by index in needs.

    `options` are the plan's options for which this host has room. `taken` is by slot; `left` counts the units of each
    part that are not placed. Bit masks of places: `cells` hold a guest's cell, `apart` an isolated group. `covered`
    has a bit for each requirement that is met. `chosen` has the places of the groups that same_subtree names, in the
    order of placing.
    """

    def __init__(self, needs: PoolDemand, plan: Plan, free_slots: FreeSlots, covered: int) -> None:
        self.needs, self.plan, self.free_slots = needs, plan, free_slots
        self.most = free_slots.most
        self.taken = [0] * len(plan.slots)
        self.left = [part.count for part in needs.parts]
        self.cells_left = sum(part.count for part in needs.parts if part.sort is Sort.CELL)
        self.cells = self.apart = 0
        self.covered = covered
        self.chosen: dict[int, int] = {}
        self.options: list[list[Option]] = []

    def masks(self) -> Masks:
        """Return the masks that `give_back` needs to restore the current state."""
        return self.cells, self.apart, self.covered

    def take(self, index: int, option: Option) -> None:
        """Place one unit of a part."""
        part = self.needs.parts[index]
        for slot, amount in option.takes:
            self.taken[slot] += amount
        self.left[index] -= 1
        self.covered |= option.covers
        if part.sort is Sort.CELL:
            self.cells |= 1 << option.place
            self.cells_left -= 1
        elif part.apart:
            self.apart |= 1 << option.place
        if part.name:
            self.chosen[index] = option.place

    def give_back(self, index: int, option: Option, masks: Masks) -> None:
        """Undo `take`; `masks` are those from before it."""
        part = self.needs.parts[index]
        for slot, amount in option.takes:
            self.taken[slot] -= amount
        self.left[index] += 1
        self.cells, self.apart, self.covered = masks
        if part.sort is Sort.CELL:
            self.cells_left += 1
        if part.name:
            del self.chosen[index]

    def snapshot(self) -> tuple[object, ...]:
        """Return the part of the state that determines what can still be placed."""
        return tuple(self.taken), self.cells, self.apart, self.covered, tuple(self.chosen.values())

    def allows(self, part: Part, option: Option) -> bool:
        """Return whether one more unit of a part may be placed there now."""
        if part.apart and (self.cells if part.sort is Sort.CELL else self.apart) >> option.place & 1:
            return False
        if part.affinity is not None and not self.cells_left and not self._is_near(part, option):
            return False
        taken, most = self.taken, self.most
        for slot, amount in option.takes:  # noqa: SIM110  # a generator costs more than the loop
            if taken[slot] + amount > most[slot]:
                return False
        return True

    def units(self, part: Part, option: Option) -> int:
        """Return how many units of a part could be placed there at most."""
        if not self.allows(part, option):
            return 0
        if part.apart or not option.takes:  # a group without resources is one unit, because it has a name
            return 1
        return min((self.most[slot] - self.taken[slot]) // amount for slot, amount in option.takes)

    def has_room(self, index: int) -> bool:
        """Return whether there is room for all remaining units of a part, taken alone."""
        part, missing = self.needs.parts[index], self.left[index]
        for option in self.options[index]:
            missing -= self.units(part, option)
            if missing <= 0:
                return True
        return missing <= 0

    def _is_near(self, part: Part, option: Option) -> bool:
        # As in Nova: `legacy` treats devices of no known node as near, `preferred` any; `required` and `socket` only
        # those of a node.
        if option.node == NO_NODE:
            return part.affinity not in (NumaAffinity.REQUIRED, NumaAffinity.SOCKET)
        if part.affinity is NumaAffinity.SOCKET:
            return bool(self.cells & self.plan.sockets[option.node])
        return part.affinity is NumaAffinity.PREFERRED or bool(self.cells >> option.node & 1)
