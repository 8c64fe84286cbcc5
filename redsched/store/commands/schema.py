"""The schema of what lies in the store (docs/keys.md), and which releases may write one cell at the same time.

A release with additions alone raises `number` and leaves `beside`: it works beside the one before, so that processes
can be replaced one by one. One that changes what others rely on raises `beside` too: it joins a cell only when an
operator has said `redsched upgrade`, which shuts the older ones out; they say so, and wait to be replaced. One that
cannot even read what older releases have written raises `reads`, and refuses their cells.
"""

from dataclasses import dataclass

from redsched.errors import SchemaMismatch
from redsched.model.validation import parse_int
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.base import CellClient


@dataclass(frozen=True, slots=True)
class Schema:
    """`number`: what this release writes; `beside`: the oldest schema whose releases it can work beside.

    `reads`: the oldest schema whose data it can read.
    """

    number: int
    beside: int
    reads: int


SCHEMA = Schema(number=2, beside=2, reads=2)


class SchemaCommands:
    """Joining and upgrading a cell."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def join(self) -> bool:
        """Enter the cell as a writer; False where it is not there yet. (schema.lua)

        Raises SchemaMismatch where this release is too old, or too new.
        """
        found = await self._schema()
        # A cell that is not there yet gets its schema from the script that makes it. The fence looks at each write.
        if found is None or found >= SCHEMA.number:
            return found is not None
        answer = await self._cell.answer("schema", (), (SCHEMA.number, SCHEMA.beside, 0))
        if answer.outcome is Outcome.OLDER:
            raise SchemaMismatch(
                f"cell {self._cell.name} is of schema {answer.facts[0]}, and releases may be at work on it that this "
                f"one (schema {SCHEMA.number}) cannot work beside: stop those, then run `redsched upgrade`"
            )
        return True

    async def upgrade(self) -> bool:
        """Shut out releases that this one cannot work beside; False where that was so already. (schema.lua)

        Raises SchemaMismatch where this release cannot read what they have written.
        """
        await self._schema()
        answer = await self._cell.answer("schema", (), (SCHEMA.number, SCHEMA.beside, 1))
        return answer.outcome is Outcome.OK

    async def _schema(self) -> int | None:
        """The schema of the cell; None where it is not there yet. Raises SchemaMismatch where it cannot be read."""
        with self._cell.reading():
            stored = await self._cell.reader.hget(self._cell.keys.meta, "schema")
        found = None if stored is None else parse_int(stored, SCHEMA.number)
        if found is not None and found < SCHEMA.reads:
            raise SchemaMismatch(
                f"cell {self._cell.name} is of schema {found}, and this release reads no schema before {SCHEMA.reads}: "
                "go on with the release that wrote it; or end its claims with that one, and give this an empty store"
            )
        return found
