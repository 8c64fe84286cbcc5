"""A cell's columns together with their position in the feed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from redsched.cache.feed import Gap, apply, check_dense, objects_to_read, whole_scripts
from redsched.cache.reading import read_into
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import Change

if TYPE_CHECKING:
    from redsched.cache.columns import Columns


class CellReplica:
    """The state of a cell in one epoch at `seq`, the seq of feed entry `entry_id`.

    Without columns it has empty ones, made when they are first used: commands that need none do not load NumPy.
    """

    __slots__ = ("_columns", "ahead", "entry_id", "epoch", "seq")

    def __init__(self, columns: "Columns | None", epoch: str, entry_id: str, seq: int) -> None:
        self._columns = columns
        self.epoch = epoch
        self.entry_id = entry_id
        self.seq = seq
        self.ahead = False

    @property
    def columns(self) -> "Columns":
        """The hosts and declared objects."""
        if self._columns is None:
            from redsched.cache.columns import Columns

            self._columns = Columns()
        return self._columns

    async def advance(self, cell: CellStore, changes: Sequence[Change], store_seq: int) -> Sequence[Change]:
        """Apply the next changes, script by script, and return those that were applied.

        `store_seq` was read before the changes. Afterwards `ahead` says whether some objects had to be read, and so may
        be newer than the feed up to `seq`. Raises Gap if the feed no longer has all entries in between.
        """
        self.ahead = False
        check_dense(changes, self.seq)
        batch = whole_scripts(changes)
        if not batch:
            if self.seq < store_seq:
                raise Gap(f"entries {self.seq + 1} to {store_seq} are no longer in the feed")
            return ()
        # Read all objects that must be read before applying anything, because decisions may be made during each await.
        unclear = objects_to_read(self.columns, batch)
        self.ahead = bool(unclear)
        for kind in Kind:
            await read_into(cell, self.columns, kind, [name for one, name in unclear if one == kind])
        apply(self.columns, batch)
        self.entry_id, self.seq = batch[-1].entry_id, batch[-1].seq
        return batch
