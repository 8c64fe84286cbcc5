"""Problems of a status in words: what each is about, numbers, names and durations."""

from collections.abc import Iterable, Sequence

from redsched.model.records.status import StatusProblem

MAX_NAMED = 100
"""The most hosts or claims that one problem names; their number is always given."""


def problem_about(
    kind: str, cell: str, about: Iterable[str], detail: str, advice: str, commands: tuple[str, ...] = ()
) -> StatusProblem:
    """Return a problem about hosts or claims, of which the first are named."""
    names = tuple(about)
    return StatusProblem(kind, cell, detail, advice, commands, names[:MAX_NAMED], len(names))


def duration(ms: int) -> str:
    """Format a duration with its largest unit: `45 s`, `12 min`, `3 h`, `4 days`."""
    seconds = max(0, ms) // 1000
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 172_800 else f"{seconds // 86_400} days"


def raise_command(above: str) -> str:
    """Return the command that starts an epoch above a given one."""
    return f"redsched init --above {above}"


def counted(number: int, what: str) -> str:
    """Return the number of things: `1 host`, `3 hosts`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def are(names: Sequence[str], what: str) -> str:
    """Return the number of things with the verb: `1 host is`, `3 hosts are`."""
    return f"{counted(len(names), what)} {'is' if len(names) == 1 else 'are'}"


def named(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are: `h1, h2 and 7 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
