"""The message window of the shared-state prototype: which messages of a host a scheduler has missed.

A host numbers its messages to each scheduler densely ("seeds"). A message may overtake a few others. A gap that is
wider, or older, than the window means that messages were lost: the scheduler asks the host for its whole state.
"""

WINDOW = 7
"""As in the prototype."""


class MessagesLost(Exception):
    """Messages were lost: the whole state must be sent again."""


class MessageWindow:
    """The seeds that were received. Before the first state, `seed` is None."""

    def __init__(self, size: int = WINDOW) -> None:
        self._size = size
        self.seed: int | None = None
        self.missing: set[int] = set()

    def reset(self, seed: int | None) -> None:
        """Start at the seed of a whole state; None until one arrives."""
        self.seed, self.missing = seed, set()

    def accept(self, seed: int) -> bool:
        """Return whether a message is new. Raises MessagesLost; then no message is accepted before the next state."""
        if self.seed is None:
            return False
        if seed <= self.seed:
            is_late = seed in self.missing
            self.missing.discard(seed)
            return is_late
        self.missing.update(range(self.seed + 1, seed))
        self.seed = seed
        if self.missing and seed - min(self.missing) >= self._size:
            self.reset(None)
            raise MessagesLost
        return True
