"""The fence command: it proves that the machine of a host is off, by switching it off. See docs/howto/fencing.md."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from typing import IO

from redsched.model.claims import plain_text
from redsched.settings import PREFIX
from redsched.subprocesses import check_command, exit_code, split_command, start

MAX_LINE = 300
"""The most characters of a failed command's output that the reason quotes."""
_TAIL_BYTES = 4 * MAX_LINE


class FenceFailed(Exception):
    """The command has proved nothing. The message says why, in one line."""


class FenceCommand:
    """Runs the fence command for one host at a time, or for several at once."""

    def __init__(self, command: str, timeout_s: float) -> None:
        self._command, self._timeout_s = split_command("fence", command), timeout_s

    def check(self) -> None:
        """Raise InvalidRequest if the command cannot be started, as things are."""
        check_command("fence", f"{PREFIX}FENCE", self._command[0], os.environ.get("PATH"))

    async def run(self, host: str) -> None:
        """Return once the command has proved that the host's machine is off. Raises FenceFailed."""
        with tempfile.TemporaryFile() as output:
            try:
                process = await start(
                    [*self._command, host], _environment(), asyncio.subprocess.DEVNULL, output, output
                )
            except (OSError, ValueError) as error:
                raise FenceFailed(f"{self._command[0]} cannot be run: {error}") from error
            try:
                code = await exit_code(process, self._timeout_s)
            except TimeoutError:
                raise FenceFailed(f"no answer within {self._timeout_s:g} s: {_last_line(output)}") from None
            if code != 0:
                raise FenceFailed(f"exit code {code}: {_last_line(output)}")


def _environment() -> Mapping[str, str]:
    """Return this process' environment without the settings of redsched: those may hold the store's password."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(PREFIX)}


def _last_line(output: IO[bytes]) -> str:
    output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL_BYTES))
    lines = output.read().decode(errors="replace").splitlines()
    text = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    return plain_text(text)[:MAX_LINE]
