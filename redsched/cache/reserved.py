"""What hosts keep for requests that wait for room, by row. Few hosts of a fleet are reserved at a time."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from redsched.model import Amounts
from redsched.model.reserved_for import ReservedFor
from redsched.model.validation import MAX_AMOUNT, parse_int, split_slot

ABOUT = {
    "reservation": "reservation",
    "reservation_from_ms": "from_ms",
    "reservation_request": "request",
    "reservation_project": "project",
}
"""The fields of a reservation besides the amounts that are kept for it, each with its attribute of `Reservation`."""


def is_of_reservation(name: str) -> bool:
    """Return whether a field of a host belongs to its reservation."""
    return name in ABOUT or name.startswith("kept.")


@dataclass(slots=True)
class Reservation:
    """The reservation of one host: `amounts` by slot are kept for it. Until `from_ms` its request certainly waits.

    `request` and `project` name the request, for those who look at the host.
    """

    reservation: str = ""
    from_ms: int = 0
    request: str = ""
    project: str = ""
    amounts: dict[str, int] = field(default_factory=dict)


class ReservedRows:
    """The reserved hosts by row."""

    def __init__(self) -> None:
        self._rows: dict[int, Reservation] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, row: int) -> Reservation | None:
        """Return the reservation of a row; None if it has none."""
        return self._rows.get(row)

    def rows(self) -> Iterator[tuple[int, Reservation]]:
        """Yield all reserved rows."""
        return iter(self._rows.items())

    def of(self, reservation: str) -> Iterator[tuple[int, Reservation]]:
        """Yield the rows that are reserved under this id."""
        return ((row, kept) for row, kept in self._rows.items() if kept.reservation == reservation)

    def of_others(self, reservation: str) -> list[int]:
        """Return the rows that are reserved under other ids."""
        return [row for row, kept in self._rows.items() if kept.reservation not in ("", reservation)]

    def until(self, end_ms: int) -> Iterator[tuple[int, Reservation]]:
        """Yield the reserved rows whose request certainly waits until `end_ms` (Unix, ms) or longer."""
        return ((row, kept) for row, kept in self._rows.items() if kept.from_ms >= end_ms)

    def amounts(self, row: int) -> Amounts:
        """Return what a row keeps, by slot."""
        kept = self._rows.get(row)
        return kept.amounts if kept is not None else {}

    def amount(self, row: int, slot: str) -> int:
        """Return what a row keeps of a slot."""
        kept = self._rows.get(row)
        return kept.amounts.get(slot, 0) if kept is not None else 0

    def for_request(self, row: int, classes: Collection[str]) -> ReservedFor | None:
        """Return what a row keeps of some classes, and for whom; None for nothing."""
        kept = self._rows.get(row)
        amounts = kept.amounts.items() if kept is not None else ()
        found = {slot: amount for slot, amount in sorted(amounts) if split_slot(slot)[1] in classes}
        return ReservedFor(found, kept.request, kept.project) if kept is not None and found else None

    def set_amount(self, row: int, slot: str, text: str) -> int:
        """Set what a row keeps of a slot, from the text of its field. Returns by how much that is more than before."""
        kept = self._at(row)
        before, after = kept.amounts.pop(slot, 0), parse_int(text, MAX_AMOUNT) if text else 0
        if after:
            kept.amounts[slot] = after
        self._drop_empty(row)
        return after - before

    def set_about(self, row: int, field_: str, text: str) -> None:
        """Set one of the fields ABOUT a row's reservation."""
        is_number = field_ == "reservation_from_ms"
        setattr(self._at(row), ABOUT[field_], parse_int(text or "0", 0) if is_number else text)
        self._drop_empty(row)

    def clear(self, row: int) -> None:
        """Forget the reservation of a row."""
        self._rows.pop(row, None)

    def describe(self, row: int) -> dict[str, object]:
        """Return every value of a row by its field, for comparison."""
        kept = self._rows.get(row)
        if kept is None:
            return {}
        about = {name: getattr(kept, attribute) for name, attribute in ABOUT.items()}
        return about | {f"kept.{slot}": amount for slot, amount in kept.amounts.items()}

    def _at(self, row: int) -> Reservation:
        return self._rows.setdefault(row, Reservation())

    def _drop_empty(self, row: int) -> None:
        kept = self._rows[row]
        if kept == Reservation():
            del self._rows[row]
