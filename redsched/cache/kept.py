"""What hosts keep for requests that wait for room, by row. Few hosts of a fleet are reserved at a time."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from redsched.model.validation import MAX_AMOUNT, parse_int

ABOUT = ("reservation", "reservation_from_ms")
"""The fields of a reservation besides the amounts that are kept for it."""


def is_of_reservation(name: str) -> bool:
    """Return whether a field of a host belongs to its reservation."""
    return name in ABOUT or name.startswith("kept.")


@dataclass(slots=True)
class Kept:
    """The reservation of one host: `amounts` by slot are kept for it. Until `from_ms` its request certainly waits."""

    reservation: str = ""
    from_ms: int = 0
    amounts: dict[str, int] = field(default_factory=dict)


class KeptRows:
    """The reserved hosts by row."""

    def __init__(self) -> None:
        self._rows: dict[int, Kept] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, row: int) -> Kept | None:
        """Return the reservation of a row; None if it has none."""
        return self._rows.get(row)

    def of(self, reservation: str) -> Iterator[tuple[int, Kept]]:
        """Yield the rows that are reserved under this id."""
        return ((row, kept) for row, kept in self._rows.items() if kept.reservation == reservation)

    def of_others(self, reservation: str) -> list[int]:
        """Return the rows that are reserved under other ids."""
        return [row for row, kept in self._rows.items() if kept.reservation not in ("", reservation)]

    def until(self, end_ms: int) -> Iterator[tuple[int, Kept]]:
        """Yield the reserved rows whose request certainly waits until `end_ms` (Unix, ms) or longer."""
        return ((row, kept) for row, kept in self._rows.items() if kept.from_ms >= end_ms)

    def amount(self, row: int, slot: str) -> int:
        """Return what a row keeps of a slot."""
        kept = self._rows.get(row)
        return kept.amounts.get(slot, 0) if kept is not None else 0

    def set_amount(self, row: int, slot: str, text: str) -> int:
        """Set what a row keeps of a slot, from the text of its field. Returns by how much that is more than before."""
        kept = self._at(row)
        before, after = kept.amounts.pop(slot, 0), parse_int(text, MAX_AMOUNT) if text else 0
        if after:
            kept.amounts[slot] = after
        self._drop_empty(row)
        return after - before

    def set_about(self, row: int, field_: str, text: str) -> None:
        """Set the field `reservation` or `reservation_from_ms` of a row."""
        kept = self._at(row)
        if field_ == "reservation":
            kept.reservation = text
        else:
            kept.from_ms = parse_int(text, 0) if text else 0
        self._drop_empty(row)

    def clear(self, row: int) -> None:
        """Forget the reservation of a row."""
        self._rows.pop(row, None)

    def describe(self, row: int) -> dict[str, object]:
        """Return every value of a row by its field, for comparison."""
        kept = self._rows.get(row)
        if kept is None:
            return {}
        about = {"reservation": kept.reservation, "reservation_from_ms": kept.from_ms}
        return about | {f"kept.{slot}": amount for slot, amount in kept.amounts.items()}

    def _at(self, row: int) -> Kept:
        return self._rows.setdefault(row, Kept())

    def _drop_empty(self, row: int) -> None:
        kept = self._rows[row]
        if not (kept.reservation or kept.from_ms or kept.amounts):
            del self._rows[row]
