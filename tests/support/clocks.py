"""The clocks of a machine, which tests set, suspend and restart."""

from redsched.agent.journal.steady_clock import Reading


class Clocks:
    """A machine that has run for ten minutes."""

    def __init__(self, wall_ms: int = 1_790_000_000_000) -> None:
        self.boot, self.up_ms, self.wall_ms = 1, 600_000, wall_ms

    def read(self) -> Reading:
        """Read them."""
        return Reading(f"boot-{self.boot}", self.up_ms, self.wall_ms)

    def wait(self, ms: int) -> None:
        """Let time pass, while the machine runs or is suspended."""
        self.up_ms += ms
        self.wall_ms += ms

    def restart(self, off_ms: int, up_ms: int = 20_000) -> None:
        """Switch the machine off for a while, and start it: since `up_ms`."""
        self.boot += 1
        self.up_ms = up_ms
        self.wall_ms += off_ms + up_ms
