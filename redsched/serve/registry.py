"""State shared by the workers of one API and their parent, as files in a directory that the parent creates.

`listens-<number>` has the pid of a worker that listens, `ready-<number>` that of a worker whose cache has caught up, so
that any worker can answer /readyz for all of them; `failed` has the error that kept a worker from starting.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from redsched import errors
from redsched.errors import RedschedError


@dataclass(frozen=True, slots=True)
class WorkerRegistry:
    """One worker's view of the shared state. `hosts`: how many hosts must have reported (`up --fleet`).

    `bound`: the name or address that the API was told to listen on.
    """

    folder: Path | None = None
    number: int = 0
    workers: int = 1
    hosts: int = 0
    bound: str = ""

    def announce(self) -> None:
        """Record that this worker listens, for the parent."""
        if self.folder is not None:
            _write(self.folder / f"listens-{self.number}", str(os.getpid()))

    def fail(self, error: RedschedError) -> None:
        """Record the error that keeps this worker from starting, for the parent."""
        if self.folder is not None:
            _write(self.folder / "failed", json.dumps({"error": type(error).__name__, "detail": error.detail}))

    def listens(self) -> bool:
        """Return whether every worker listens."""
        return self.folder is not None and all((self.folder / f"listens-{n}").exists() for n in range(self.workers))

    def failure(self) -> RedschedError | None:
        """Return the error that kept a worker from starting; None if there is none."""
        file = Path() if self.folder is None else self.folder / "failed"
        if not file.is_file():
            return None
        said = json.loads(file.read_text())
        kind: type[RedschedError] = getattr(errors, said["error"], RedschedError)
        return kind(said["detail"])

    def mark(self, ready: bool) -> None:
        """Record whether this worker is ready, for the other workers."""
        if self.folder is None:
            return
        file = self.folder / f"ready-{self.number}"
        if not ready:
            file.unlink(missing_ok=True)
        elif not file.exists():
            _write(file, str(os.getpid()))

    def forget(self) -> None:
        """Forget this worker's process, which has died: the next one is not ready before it says so."""
        if self.folder is not None:
            for state in ("listens", "ready"):
                (self.folder / f"{state}-{self.number}").unlink(missing_ok=True)

    def missing(self) -> list[int]:
        """Return the numbers of the workers that are not ready or have died."""
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
    """Write a file atomically, because others read it at any time."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.replace(file)
