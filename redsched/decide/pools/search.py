"""The exact search: a place for every unit of every part, so that each slot can give its sum.

Depth first, unit by unit. The first descent follows preferences alone and usually succeeds, as hosts have passed the
cheap tests. After the first dead end each step also looks ahead, dead ends are remembered by the state in which they
occurred, and of equivalent places only one is tried; so no dead end is visited twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redsched.decide.pools.demand import Sort
from redsched.decide.pools.look_ahead import may_succeed, subtrees_may_hold
from redsched.decide.pools.plan import Option
from redsched.decide.pools.preference import preferred
from redsched.decide.pools.state import Masks, SearchState
from redsched.decide.work_limit import check_work
from redsched.model import Amounts

STEPS = 20_000
"""The most units placed on one host, including those undone, before the search is abandoned: some 100 ms.

8 groups on 16 pools, or 64 devices, take a step or two each. Only requests with many unequal groups that nearly fill
many unequal pools come close to this limit. Their assignment is not worth the time that other hosts would lose.
"""

STEPS_A_CHECK = 8
"""How many steps pass between two checks of the limit on work, each of which costs a system call."""


class GivenUp(Exception):
    """The search used all its steps: whether there is an assignment is unknown."""


@dataclass(slots=True)
class Frame:
    """One unit being placed: the places left to try, its current place, and the state before."""

    index: int
    tries: Iterator[Option]
    masks: Masks
    option: Option | None = None


class Search:
    """A search for an assignment that is not among those `found`. It avoids their slots if possible."""

    def __init__(self, state: SearchState, found: Sequence[Amounts], steps: int = STEPS) -> None:
        self._state = state
        self._found = found
        self._steps = steps
        self._avoid = _slots_of(state, found) if found else frozenset()
        self._order = _order(state)
        self._dead: set[object] = set()
        self._is_careful = False

    def run(self) -> Amounts | None:
        """Return the best assignment; None if there is none. The state is empty again afterwards.

        Raises GivenUp if the search takes too many steps.
        """
        frames = [self._frame(0)]
        try:
            return self._descend(frames)
        finally:
            for frame in reversed(frames):
                self._undo(frame)

    def _descend(self, frames: list[Frame]) -> Amounts | None:
        while frames:
            frame = frames[-1]
            self._undo(frame)
            self._count_step()
            frame.option = next(frame.tries, None)
            if frame.option is None:
                frames.pop()
                self._dead.add((len(frames), *self._state.snapshot()))
                continue
            self._state.take(frame.index, frame.option)
            if not self._is_feasible(frame.index, len(frames)):
                self._is_careful = True
            elif len(frames) == len(self._order):
                return self._amounts()
            else:
                frames.append(self._frame(len(frames)))
        return None

    def _frame(self, depth: int) -> Frame:
        return Frame(self._order[depth], self._tries(self._order[depth]), self._state.masks())

    def _undo(self, frame: Frame) -> None:
        if frame.option is not None:
            self._state.give_back(frame.index, frame.option, frame.masks)
            frame.option = None

    def _count_step(self) -> None:
        self._steps -= 1
        if self._steps < 0:
            raise GivenUp
        if not self._steps % STEPS_A_CHECK:
            check_work("searching the pools of a host")

    def _tries(self, index: int) -> Iterator[Option]:
        """Yield the places to try. When the next place is requested, the previous one counts as a dead end."""
        tried: set[object] = set()
        last = None
        for option in preferred(self._state, index, self._avoid):
            if last is not None:
                self._is_careful = True
                tried.add(self._likeness(last))
            if not tried or self._likeness(option) not in tried:
                yield option
                last = option

    def _likeness(self, option: Option) -> object:
        """Return a key that is equal for interchangeable places: same layout, equal numbers, untouched."""
        state, place = self._state, option.place
        slots = state.plan.slots_of[place]
        is_like_others = state.plan.twins[place] >= 0 and place not in state.chosen.values()
        if not is_like_others or any(state.taken[one] or one in self._avoid for one in slots):
            return place
        numbers = state.free_slots.numbers
        return state.plan.twins[place], tuple((state.most[one], *numbers[one][3:]) for one in slots)

    def _is_feasible(self, index: int, depth: int) -> bool:
        state = self._state
        if state.chosen and not subtrees_may_hold(state, index):
            return False
        if depth == len(self._order):
            is_met = state.covered == (1 << len(state.needs.wants)) - 1
            return is_met and not (self._found and self._amounts() in self._found)
        return not self._is_careful or ((depth, *state.snapshot()) not in self._dead and may_succeed(state))

    def _amounts(self) -> Amounts:
        return {slot: amount for slot, amount in zip(self._state.plan.slots, self._state.taken, strict=True) if amount}


def _slots_of(state: SearchState, found: Sequence[Amounts]) -> frozenset[int]:
    return frozenset(number for number, slot in enumerate(state.plan.slots) if any(slot in one for one in found))


def _order(state: SearchState) -> list[int]:
    """Return the part of each unit, in the order of placing: cells and groups with few choices and large amounts first.

    Devices come after the cells that they must be near, and parts that may lie anywhere last, as in `needs`.
    """
    parts = state.needs.parts
    order = list(range(len(parts)))
    packed = sum(part.sort <= Sort.GROUP for part in parts)
    if packed > 1:
        order[:packed] = sorted(order[:packed], key=lambda index: _ease(state, index))
    return [index for index in order for _ in range(parts[index].count)]


def _ease(state: SearchState, index: int) -> tuple[float, float]:
    options = state.options[index]
    share = max((amount / state.most[slot] for option in options[:1] for slot, amount in option.takes), default=0)
    return len(options) / state.needs.parts[index].count, -share
