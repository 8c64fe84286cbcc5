"""The schema of what lies in the store (docs/keys.md), and which releases may write one cell at the same time.

A release with additions alone raises `number` and leaves `beside`: it works beside the one before, so that processes
can be replaced one by one. One that changes what others rely on raises `beside` too: it joins a cell only when an
operator has said `redsched upgrade`, which shuts the older ones out; they say so, and wait to be replaced.
"""

from dataclasses import dataclass

from redsched.errors import WrongRelease
from redsched.store.connection import reading
from redsched.store.outcomes import Outcome
from redsched.store.reads import Reads


@dataclass(frozen=True, slots=True)
class Schema:
    """`number`: what this release writes; `beside`: the oldest schema whose releases it can work beside."""

    number: int
    beside: int


SCHEMA = Schema(number=1, beside=1)


class SchemaCalls(Reads):
    """Joining and upgrading a cell."""

    async def join(self) -> bool:
        """Enter the cell as a writer; False where it is not there yet. (schema.lua)

        Raises WrongRelease where this release is too old, or too new.
        """
        with reading(self._url):
            found = await self._reader.hget(self.keys.meta, "schema")
        # A cell that is not there yet gets its schema from the script that makes it. The fence looks at each write.
        if found is None or int(found) >= SCHEMA.number:
            return found is not None
        answer = await self._answer("schema", (), (SCHEMA.number, SCHEMA.beside, 0))
        if answer.outcome is Outcome.OLDER:
            raise WrongRelease(
                f"cell {self.name} is of schema {answer.facts[0]}, and releases may be at work on it that this one "
                f"(schema {SCHEMA.number}) cannot work beside: stop those, then run `redsched upgrade`"
            )
        return True

    async def upgrade(self) -> bool:
        """Shut out releases that this one cannot work beside; False where that was so already. (schema.lua)"""
        answer = await self._answer("schema", (), (SCHEMA.number, SCHEMA.beside, 1))
        return answer.outcome is Outcome.OK
