"""Commands that settings name: found before they are needed, run in a session of their own, and ended as a whole.

A command may start further processes. Its session has all of them, so that a timeout ends them too.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
from collections.abc import Mapping, Sequence
from typing import IO

from redsched.aio import finish
from redsched.errors import InvalidRequest

GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL for a command that timed out."""


def split_command(what: str, command: str) -> list[str]:
    """Return the words of a command. Raises InvalidRequest, which calls it `what`, if it cannot be read as one."""
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InvalidRequest(f"{what} {command!r} cannot be read as a command: {error}") from error


def check_command(what: str, setting: str, name: str, path: str | None) -> None:
    """Raise InvalidRequest if the command `name` of a setting cannot be started, as things are."""
    if shutil.which(name, path=path) is not None:
        return
    if "/" not in name:
        raise InvalidRequest(
            f"{what} {name!r} is not a command in PATH, {path or 'which is not set'}: correct {setting}, give "
            "the path of the file, or install it"
        )
    if not os.path.exists(name):
        here = "" if os.path.isabs(name) else f", in {os.getcwd()}"
        raise InvalidRequest(f"{what} {name!r} does not exist{here}: correct {setting}, or install the file")
    if os.path.isdir(name):
        raise InvalidRequest(f"{what} {name!r} is a directory: name an executable file in {setting}")
    raise InvalidRequest(
        f"{what} {name!r} is not executable for this user: run `chmod +x {shlex.quote(name)}`, or name another file "
        f"in {setting}"
    )


async def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
) -> asyncio.subprocess.Process:
    """Start a command in a session of its own. Raises OSError or ValueError if it cannot be run."""
    spawned = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, start_new_session=True
        )
    )
    try:
        # Shielded: uvloop ends a process whose start is cancelled, but neither reaps it nor ends its children.
        return await asyncio.shield(spawned)
    except asyncio.CancelledError:
        await finish(_end_spawned(spawned))
        raise


async def exit_code(process: asyncio.subprocess.Process, timeout_s: float) -> int:
    """Return the exit code. On timeout, end the command with its whole session, then raise TimeoutError."""
    try:
        return await asyncio.wait_for(process.wait(), timeout_s)
    finally:
        if process.returncode is None:
            await finish(_end(process))


async def _end_spawned(spawned: "asyncio.Task[asyncio.subprocess.Process]") -> None:
    """End a command that was cancelled while it was being started."""
    try:
        process = await spawned
    except Exception:  # there is nothing to end, and the caller is to learn of the cancellation
        return
    await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the command's whole session: SIGTERM first, then SIGKILL."""
    _signal(process, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), GRACE_S)
    except TimeoutError:
        pass
    finally:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
