"""Progress output of a run: a line for each round and for each error, as text or as JSON."""

import json
import time
from collections.abc import Callable
from typing import Any, Protocol

from tests.faults.suite.plan import Round
from tests.faults.suite.reporting.result import Result

Write = Callable[[str], None]
"""A stream that writes text unchanged."""


class Telling(Protocol):
    """A receiver of progress."""

    def begins(self, round_: Round) -> None:
        """A round is about to be played."""

    def ended(self, result: Result) -> None:
        """A round has been played."""

    def wrong(self, problem: str) -> None:
        """An error that belongs to no round."""


class Lines:
    """For people: the plan of a round is shown while it is played, and its result ends the line."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def begins(self, round_: Round) -> None:
        """Begin the round's line."""
        self._write(f"{time.strftime('%H:%M:%S')} {round_}")

    def ended(self, result: Result) -> None:
        """End the round's line; its errors follow below."""
        self._write(f" -> {result}\n")
        for problem in result.wrong:
            self.wrong(problem)

    def wrong(self, problem: str) -> None:
        """Print a line of its own. The last line of a traceback names the error, so it comes first."""
        *frames, last = [line.strip() for line in problem.splitlines() if line.strip(" ^~\n")] or [""]
        came_by = f" (came by: {' | '.join(frames)})" if frames else ""
        self._write(f"  WRONG: {last}{came_by}\n")


class JsonLines:
    """For programs: a JSON object for each round, once it has ended."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def begins(self, round_: Round) -> None:
        """Print nothing: a round is reported when it has ended."""

    def ended(self, result: Result) -> None:
        """Print the round's result."""
        self._say(kind="round", **words_of(result))

    def wrong(self, problem: str) -> None:
        """Print an error as an object of its own."""
        self._say(kind="wrong", wrong=problem)

    def _say(self, **words: Any) -> None:
        self._write(json.dumps(words) + "\n")


def words_of(result: Result) -> dict[str, Any]:
    """Return a round and its result as JSON fields."""
    strikes = [
        {"fault": one.fault, "point": one.point, "victims": one.victims, "after": one.after, "seconds": one.seconds}
        for one in result.round.strikes
    ]
    return {
        "round": result.round.number,
        "setup": result.round.setup,
        "strikes": strikes,
        "answers": result.answers,
        "acknowledged": dict(result.acknowledged),
        "lost": dict(result.lost),
        "restored": result.restored,
        "over_committed": result.over_committed,
        "epochs": result.epochs,
        "meanwhile": dict(result.meanwhile),
        "first_s": result.first_s,
        "settled_s": result.settled_s,
        "agree_s": result.agree_s,
        "wrong": result.wrong,
    }
