"""How a run is told while it goes on: a line for each round and for each thing that is wrong, as text or as JSON."""

import json
import time
from collections.abc import Callable
from typing import Any, Protocol

from tests.faults.suite.plan import Round
from tests.faults.suite.result import Result

Write = Callable[[str], None]
"""Writes text as it is: nothing is added to it."""


class Telling(Protocol):
    """Whoever is told."""

    def begins(self, round_: Round) -> None:
        """A round is about to be played."""

    def ended(self, result: Result) -> None:
        """A round has been played."""

    def wrong(self, problem: str) -> None:
        """Something is wrong that belongs to no round."""


class Lines:
    """For people: the plan of a round stands there while it is played, and what it came to ends the line."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def begins(self, round_: Round) -> None:
        """Begin its line."""
        self._write(f"{time.strftime('%H:%M:%S')} {round_}")

    def ended(self, result: Result) -> None:
        """End its line; what is wrong stands below it."""
        self._write(f" -> {result}\n")
        for problem in result.wrong:
            self.wrong(problem)

    def wrong(self, problem: str) -> None:
        """A line of its own, also for a traceback: its last line says what it was, and so comes first."""
        *frames, last = [line.strip() for line in problem.splitlines() if line.strip(" ^~\n")] or [""]
        came_by = f" (came by: {' | '.join(frames)})" if frames else ""
        self._write(f"  WRONG: {last}{came_by}\n")


class JsonLines:
    """For programs: a JSON object for each round, once it has ended."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def begins(self, round_: Round) -> None:
        """Nothing is told before it has ended."""

    def ended(self, result: Result) -> None:
        """Tell all that it came to."""
        self._say(kind="round", **words_of(result))

    def wrong(self, problem: str) -> None:
        """Tell it by itself."""
        self._say(kind="wrong", wrong=problem)

    def _say(self, **words: Any) -> None:
        self._write(json.dumps(words) + "\n")


def words_of(result: Result) -> dict[str, Any]:
    """Return a round and what it came to, as JSON has it."""
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
