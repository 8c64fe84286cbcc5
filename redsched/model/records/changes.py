"""Changes of cells, as the stream of changes has them."""

from dataclasses import dataclass, field
from typing import Annotated

from redsched.model.records.fields import HIDDEN, Texts


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a cell: the new absolute values of the changed fields. `seq` numbers the changes without gaps.

    `id` is where to go on after it, in every cell that is followed: pass it as `last_id`.
    """

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: Texts = field(default_factory=dict)
    id: Annotated[str, HIDDEN] = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Reset:
    """Changes are missing, or a new epoch began, so that followers must reload. The changes continue after `seq`.

    `id` is as in a Change.
    """

    cell: str
    seq: int
    id: str = field(default="", compare=False)
