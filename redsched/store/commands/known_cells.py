"""The names of a store's cells, as far as a process knows them: it may serve one of several."""

from collections.abc import Iterable

from redsched import aio

READ_EVERY_S = 60.0
"""How old the list may be when a name of a host is bound: a store may get its second cell while a process runs."""


class KnownCells:
    """The cells of the settings, and those that the store has listed. Once known, a cell stays known."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self._read_at_s: float | None = None

    @property
    def are_old(self) -> bool:
        """Whether the list has to be read again."""
        return self._read_at_s is None or aio.now_s() - self._read_at_s > READ_EVERY_S

    def note(self, listed: Iterable[str]) -> None:
        """Record what the store lists now."""
        self.names.update(listed)
        self._read_at_s = aio.now_s()
