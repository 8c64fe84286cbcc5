"""The schema of the store's data (docs/keys.md), and which releases may write to one cell at the same time.

A release that only adds to the schema raises `number` but not `beside`: it works beside the previous one, so that
processes can be replaced one by one. A release that changes what others rely on raises `beside` too: it joins a cell
only after an operator has run `redsched upgrade`, which shuts out older releases; those report that, and wait to be
replaced. A release that cannot even read the data of older releases raises `reads`, and refuses their cells.
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
        """Join the cell as a writer; return False if the cell does not exist yet. (schema.lua)

        Raises SchemaMismatch if this release is too old or too new.
        """
        found, _ = await self._schemas()
        # A new cell gets its schema from the script that creates it. The fence checks the schema at each write.
        if found is None or found >= SCHEMA.number:
            return found is not None
        answer = await self._cell.answer("schema", (), (SCHEMA.number, SCHEMA.beside, 0))
        if answer.outcome is Outcome.OLDER:
            raise SchemaMismatch(
                f"cell {self._cell.name} has schema {answer.facts[0]}, and releases may be using it that this "
                f"one (schema {SCHEMA.number}) cannot run beside: stop them, then run `redsched upgrade`"
            )
        return True

    async def upgrade(self) -> bool:
        """Shut out releases that this one cannot work beside; return False if they already were. (schema.lua)

        Raises SchemaMismatch if this release cannot read what they have written.
        """
        await self._schemas()
        answer = await self._cell.answer("schema", (), (SCHEMA.number, SCHEMA.beside, 1))
        return answer.outcome is Outcome.OK

    async def check_readable(self) -> None:
        """Check that this release can read the cell. Raises SchemaMismatch if its schema is too old, or was upgraded.

        The fence checks the second of these for connections that write.
        """
        _, oldest = await self._schemas()
        if oldest > SCHEMA.number:
            raise SchemaMismatch(
                f"cell {self._cell.name} was upgraded to schema {oldest}, and this release has {SCHEMA.number}: "
                "upgrade this process"
            )

    async def _schemas(self) -> tuple[int | None, int]:
        """Return the cell's schema, None if there is no cell yet, and the oldest that may still write, 0 for any.

        Raises SchemaMismatch if the first is too old to read.
        """
        with self._cell.reading():
            stored, oldest = await self._cell.reader.hmget(self._cell.keys.meta, "schema", "oldest")
        found = None if stored is None else parse_int(stored, SCHEMA.number)
        if found is not None and found < SCHEMA.reads:
            raise SchemaMismatch(
                f"cell {self._cell.name} has schema {found}, and this release reads no schema before {SCHEMA.reads}: "
                "keep using the release that wrote it; or end its claims with that release, and use an empty store"
            )
        return found, 0 if oldest is None else parse_int(oldest, 0)
