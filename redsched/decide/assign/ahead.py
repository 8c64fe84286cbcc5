"""Looking ahead: whether what is still to be placed can be, as far as that is cheap to tell. `False` is for certain."""

from collections.abc import Iterable

from redsched.decide.assign.board import Board
from redsched.decide.assign.needs import Sort
from redsched.decide.assign.plan import bits


def may_go_on(board: Board) -> bool:
    """Whether each part left has room alone, cells and isolated groups can lie apart, and wants can be met."""
    left = [index for index, units in enumerate(board.left) if units]
    if not all(board.has_room(index) for index in left):
        return False
    apart = [index for index in left if board.needs.parts[index].apart]
    by_sort = ([index for index in apart if board.needs.parts[index].sort is sort] for sort in (Sort.CELL, Sort.GROUP))
    return all(len(one) < 2 or can_lie_apart(board, one) for one in by_sort) and _wants_may_be_met(board, left)


def can_lie_apart(board: Board, indexes: Iterable[int]) -> bool:
    """Whether all units of these parts can have a place each: a matching, by augmenting paths (Kuhn)."""
    held: dict[int, int] = {}
    places = {
        index: [option.place for option in board.options[index] if board.allows(board.needs.parts[index], option)]
        for index in indexes
    }

    def settle(index: int, seen: set[int]) -> bool:
        for place in places[index]:
            if place not in seen:
                seen.add(place)
                if place not in held or settle(held[place], seen):
                    held[place] = index
                    return True
        return False

    return all(settle(index, set()) for index in places for _ in range(board.left[index]))


def subtrees_may_hold(board: Board, index: int) -> bool:
    """Whether every same_subtree set of this group still can have a member in or above whose pool all others lie."""
    return all(_may_hold(board, group) for group in board.needs.subtrees if index in group)


def _may_hold(board: Board, group: frozenset[int]) -> bool:
    above = board.plan.above
    placed = [board.chosen[one] for one in group if one in board.chosen]
    common = -1
    for place in placed:
        common &= above[place]
    if common & bits(placed):
        return True
    return any(common >> option.place & 1 for one in group if one not in board.chosen for option in board.options[one])


def _wants_may_be_met(board: Board, left: Iterable[int]) -> bool:
    covered = board.covered
    for index in left:
        for option in board.options[index]:
            covered |= option.covers
    return covered == (1 << len(board.needs.wants)) - 1
