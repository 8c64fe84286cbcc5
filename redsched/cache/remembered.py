"""The hosts that a replica remembers after a wipe of the store, which has forgotten them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from redsched.store.codec.replies import Clock

if TYPE_CHECKING:
    from redsched.cache.columns import Columns

FRESH_MS = 5000
"""How old the last poll of a replica may be at the start of the new epoch. Whatever joined the cell after that poll is
unknown to this replica. The scheduler that has placed something there knows it, and reports that it is missing."""


class RememberedHosts:
    """The hosts of the epochs before this one, for as long as the cell waits for hosts that its store has forgotten."""

    def __init__(self) -> None:
        self._names: set[str] | None = None
        self._missing: set[str] = set()
        self.is_new = False
        """Whether an epoch has begun since `missing` was last called."""

    def begin(self, hosts: Iterable[str], clock: Clock, epoch: str) -> None:
        """Remember the hosts of a replica as of its last poll, at `clock`, after which this epoch has begun.

        They are all hosts of the cell only if those of the store were, and if no others can have joined unseen.
        """
        was_complete = clock.knows_hosts or self._names is not None
        is_fresh = abs(int(epoch.partition("-")[0]) - clock.now_ms) <= FRESH_MS
        self._names = {*hosts, *(self._names or ())} if was_complete and is_fresh else None
        self._missing = set(self._names or ())
        self.is_new = True

    def missing(self, columns: "Columns") -> int | None:
        """Return how many of these hosts have not attested; None if nothing complete is remembered."""
        self.is_new = False
        if self._names is None:
            return None
        self._missing = {name for name in self._missing if not columns.has_attested(name)}
        return len(self._missing)

    def forget(self) -> None:
        """Forget the hosts: the store knows those of the cell."""
        self._names, self._missing, self.is_new = None, set(), False
