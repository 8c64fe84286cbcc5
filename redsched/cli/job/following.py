"""Follow the claims of a job until all of them have ended: what becomes of them, and their logs.

A log is a file on the host, which the claim names. It is copied if it can be read here: on the same machine, or if the
folder of the jobs is on a file system that the hosts share.
"""

import asyncio
import os
import stat
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
INTERRUPTED = 130
TIME_IS_UP = 124
"""The exit status for a job that was stopped because its time was up, as of timeout(1)."""
NO_STATUS = 125
"""The exit status for a job that has none of its own: it could not be started, was released or was lost."""


class LogFile:
    """The log that a claim names as `host:path`, and how much of it has been read."""

    def __init__(self, log: str) -> None:
        self.host, _, path = log.partition(":")
        self.path = Path(path)
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
            with self._opened() as file:
                file.seek(self._read)
                return file.read(MOST_AT_ONCE)
        except OSError:
            return b""

    @property
    def elsewhere(self) -> str:
        """Where the log is and why it cannot be read, as text; '' if it can be read here, by this user."""
        try:
            self._opened().close()
        except OSError as error:
            return f"has its log on {self.host}, in {self.path}: it cannot be read here ({error.strerror})"
        return ""

    def _opened(self) -> BinaryIO:
        file = os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK), "rb")  # opening a pipe would wait
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise OSError(0, "it is no file")
        return file


class Follower:
    """One claim of a job."""

    def __init__(self, claim_id: str, output: BinaryIO) -> None:
        self.claim_id = claim_id
        self.exit_status: int | None = None
        """Set when the claim has ended."""
        self._output = output
        self._logs: dict[str, LogFile] = {}
        """By what the claim has called them. It has another one after each placement."""
        self._told = ""
        self._elsewhere = set[str]()
        """The logs of which it has been said where they are."""

    def look(self, claim: Claim) -> None:
        """Say what has become of the claim, and copy what its logs have got."""
        if claim.log:
            self._logs.setdefault(claim.log, LogFile(claim.log))
        self._tell(claim)
        for log in self._logs.values():
            log.copy_new(self._output)
        if claim.state is ClaimStatus.ENDED:
            self.exit_status = self._end(claim)

    def _tell(self, claim: Claim) -> None:
        text = _becomes(claim)
        if text and text != self._told:
            self._told = text
            self._say(text)
        log = self._logs.get(claim.log)
        if log is not None and claim.log not in self._elsewhere and (problem := log.elsewhere):
            self._elsewhere.add(claim.log)
            self._say(problem)

    def _end(self, claim: Claim) -> int:
        reason = claim.reason.line if claim.reason else ""
        status = exit_status_in(reason) if claim.end_reason is EndReason.WORK_ENDED else None
        if status is not None:
            self._say(f"has ended, exit status {status}")
            return status
        self._say(f"has ended, {claim.end_reason}{f': {reason}' if reason else ''}")
        return TIME_IS_UP if claim.end_reason is EndReason.MAX_RUNTIME else NO_STATUS

    def _say(self, text: str) -> None:
        say(f"{self.claim_id} {text}")


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
