"""Follow the claims of a job until all of them have ended: what becomes of them, and their logs.

A log is a file on the host, which the hook for jobs writes (deploy/hooks/job). It is copied if it can be read here: on
the same machine, or if the folder of the jobs is on a shared file system.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from redsched.cli.fleet import Fleet
from redsched.errors import SchemaMismatch, Unavailable
from redsched.model import Claim, ClaimStatus, EndReason
from redsched.model.claims import exit_status_in

EVERY_S = 0.5
"""The time between two looks at the claims and their logs."""
MOST_AT_ONCE = 1_048_576
"""The most bytes of a log that are read at once."""
USUAL_FOLDER = "~/.local/state/redsched/jobs"
TIME_IS_UP = 124
"""The exit status for a job that was stopped because its time was up, as of timeout(1)."""
NO_STATUS = 125
"""The exit status for a job that has none of its own: it could not be started, was released or was lost."""


class LogFile:
    """A log, and how much of it has been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def copy_new(self, output: BinaryIO) -> None:
        """Write what the log has got since the last call to the output."""
        while True:
            part = self._next()
            output.write(part)
            self._read += len(part)
            if len(part) < MOST_AT_ONCE:  # all of it, while the job may go on writing
                return output.flush()

    def _next(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                return file.read(MOST_AT_ONCE)
        except OSError:  # it is on another machine, or not there yet
            return b""

    @property
    def can_be_read(self) -> bool:
        """Whether the log is on this machine, for this user."""
        try:
            with self.path.open("rb"):
                return True
        except OSError:
            return False


class Follower:
    """One claim of a job."""

    def __init__(self, claim_id: str, folder: str, output: BinaryIO) -> None:
        self.claim_id = claim_id
        self.exit_status: int | None = None
        """Set when the claim has ended."""
        self._folder = folder or USUAL_FOLDER
        self._output = output
        self._logs: dict[str, LogFile] = {}
        """By placement."""
        self._told = ""

    def look(self, claim: Claim) -> None:
        """Say what has become of the claim, and copy what its logs have got."""
        for placed in [one.placed for one in claim.placements] or [claim.token]:
            self._log_of(placed)
        self._tell(claim)
        for log in self._logs.values():
            log.copy_new(self._output)
        if claim.state is ClaimStatus.ENDED:
            self.exit_status = self._end(claim)

    def _log_of(self, placed: str) -> LogFile:
        return self._logs.setdefault(placed, LogFile(Path(self._folder).expanduser() / placed / "log"))

    def _tell(self, claim: Claim) -> None:
        text, placed = _becomes(claim), claim.placed or claim.token
        if claim.state is ClaimStatus.ACTIVE and not self._log_of(placed).can_be_read:
            text += f". Its log cannot be read here: {self._folder}/{placed}/log on {claim.host}"
        if text and text != self._told:
            self._told = text
            say(f"{self.claim_id} {text}")

    def _end(self, claim: Claim) -> int:
        reason = claim.reason.line if claim.reason else ""
        status = exit_status_in(reason) if claim.end_reason is EndReason.WORK_ENDED else None
        if status is not None:
            return status
        say(f"{self.claim_id} has ended, {claim.end_reason}{f': {reason}' if reason else ''}")
        return TIME_IS_UP if claim.end_reason is EndReason.MAX_RUNTIME else NO_STATUS


async def follow(fleet: Fleet, followers: Sequence[Follower]) -> int:
    """Follow claims until all of them have ended, and return the highest exit status.

    A fleet that cannot be reached is tried again, with the reason on stderr. Raises NotFound for a forgotten claim.
    """
    said = ""
    while left := [one for one in followers if one.exit_status is None]:
        try:
            for one in left:
                one.look(await fleet.claims.get(one.claim_id))
            said = ""
        except SchemaMismatch:
            raise  # another release of redsched is needed
        except Unavailable as error:
            if str(error) != said:
                said = str(error)
                say(f"trying again, and the job goes on: {said}")
        await asyncio.sleep(EVERY_S)
    return max(one.exit_status or 0 for one in followers)


def say(text: str) -> None:
    """Print a line about the job to stderr: what the job prints is on stdout."""
    print(f"redsched: {text}", file=sys.stderr, flush=True)


def _becomes(claim: Claim) -> str:
    """Return what is becoming of a claim; '' if there is nothing to say."""
    if claim.state in (ClaimStatus.CLAIMED, ClaimStatus.STARTING):
        return f"starts on {claim.host}"
    if claim.state is ClaimStatus.ACTIVE:
        return f"runs on {claim.host}"
    if claim.state is ClaimStatus.PENDING:
        return f"waits to be placed again{f': {claim.reason.line}' if claim.reason else ''}"
    return ""
