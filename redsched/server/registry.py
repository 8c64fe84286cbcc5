"""What the workers of one API and their parent tell each other, in the files of a folder that the parent made.

`listens-<number>` and `ready-<number>` hold the pid of a worker that listens, and of one whose cache has caught up, so
that any worker can answer /readyz for all of them; `failed` says what kept one from starting.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from redsched import errors
from redsched.errors import RedschedError


@dataclass(frozen=True, slots=True)
class WorkerRegistry:
    """One worker's place among its fellows. `hosts`: how many must have reported (`up --fleet`)."""

    folder: Path | None = None
    number: int = 0
    workers: int = 1
    hosts: int = 0

    def announce(self) -> None:
        """Tell the parent that this worker listens."""
        if self.folder is not None:
            _write(self.folder / f"listens-{self.number}", str(os.getpid()))

    def fail(self, error: RedschedError) -> None:
        """Tell the parent what keeps this worker from starting."""
        if self.folder is not None:
            _write(self.folder / "failed", json.dumps({"error": type(error).__name__, "detail": error.detail}))

    def listens(self) -> bool:
        """Whether every worker listens."""
        return self.folder is not None and all((self.folder / f"listens-{n}").exists() for n in range(self.workers))

    def failure(self) -> RedschedError | None:
        """What a worker said kept it from starting."""
        file = Path() if self.folder is None else self.folder / "failed"
        if not file.is_file():
            return None
        said = json.loads(file.read_text())
        kind: type[RedschedError] = getattr(errors, said["error"], RedschedError)
        return kind(said["detail"])

    def mark(self, ready: bool) -> None:
        """Tell the others whether this worker is ready."""
        if self.folder is None:
            return
        file = self.folder / f"ready-{self.number}"
        if not ready:
            file.unlink(missing_ok=True)
        elif not file.exists():
            _write(file, str(os.getpid()))

    def missing(self) -> list[int]:
        """The numbers of the workers that are not ready, or no longer there."""
        if self.folder is None:
            return []
        return [number for number in range(self.workers) if not _lives(self.folder / f"ready-{number}")]


def _lives(file: Path) -> bool:
    try:
        os.kill(int(file.read_text()), 0)
    except (OSError, ValueError):
        return False
    return True


def _write(file: Path, text: str) -> None:
    """Whole or not at all: others read it at any time."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.replace(file)
