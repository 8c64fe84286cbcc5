"""A hook that is a command: run with the verb as its last argument and the claim on stdin."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from typing import IO

from redsched.agent.hooks.base import HookFailed, HookNotRun, HookRequest, Output
from redsched.errors import InvalidRequest
from redsched.subprocesses import check_command, exit_code, split_command, start

PASSED = frozenset(
    {"PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR", "REDSCHED_JOB_FOLDER"}
)
PASSED_PREFIXES = ("LC_", "SSL_CERT_")
"""The variables that a hook gets: no others, because the agent's may hold the store's password and tokens."""


class CommandHook:
    """Runs a command in a session of its own, so that a timeout ends all processes that it has started."""

    def __init__(self, command: str, timeout_s: float, variables: Collection[str] = ()) -> None:
        """`variables`: what the command gets of this process' environment beside the usual variables."""
        self._command = split_command("hook", command)
        if not self._command:
            raise InvalidRequest("hook is blank: name a command or a URL, or leave REDSCHED_HOOK empty")
        self._timeout_s = timeout_s
        self._passed = variables

    def check(self) -> None:
        """Raise InvalidRequest if the command cannot be started, as things are: for an agent that starts."""
        path = hook_environment(self._passed, {}).get("PATH")
        check_command("hook", "REDSCHED_HOOK", self._command[0], path)

    async def run(self, order: HookRequest) -> bytes:
        """Run the command and return its output. Raises HookFailed."""
        with _stdin(order.body()) as stdin, _Capture() as stdout, _Capture() as stderr:
            process = await self._start(order, stdin, stdout.write_end, stderr.write_end)
            stdout.follow()
            stderr.follow()
            try:
                code = await self._wait(process)
            except TimeoutError:
                slow = f"{self._describe(order)} took longer than {self._timeout_s:g} s and was ended"
                raise HookFailed(slow, stderr.read().reason(slow)) from None
            if code != 0:
                failed, stderr_text = f"{self._describe(order)} ended with exit code {code}", stderr.read()
                raise HookFailed(f"{failed}: {_last_line(stderr_text.last)}", stderr_text.reason(failed))
            return bytes(stdout.read().first)

    async def _start(
        self, order: HookRequest, stdin: IO[bytes], stdout: int, stderr: int
    ) -> asyncio.subprocess.Process:
        environment = hook_environment(self._passed, _variables(order))
        try:
            return await start([*self._command, order.verb.value], environment, stdin, stdout, stderr)
        except (OSError, ValueError) as error:
            raise HookNotRun(f"{self._describe(order)} cannot be run: {error}") from error

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        return await exit_code(process, self._timeout_s)

    def _describe(self, order: HookRequest) -> str:
        return f"hook {self._command[0]!r} {order.verb} for {order.work.id}"


def _variables(order: HookRequest) -> dict[str, str]:
    work = order.work
    return {
        "REDSCHED_CLAIM_ID": work.id,
        "REDSCHED_TOKEN": work.token,
        "REDSCHED_PLACED": work.placed,
        "REDSCHED_HOST": order.host,
        "REDSCHED_ACTOR": work.origin.actor,
        "REDSCHED_REQUEST_ID": work.origin.request_id,
        **({"TRACEPARENT": order.traceparent} if order.traceparent else {}),
    }


class _Capture:
    """A pipe, and the Output that is read from it.

    asyncio's own pipes are not used: with those a process counts as running until its pipes are closed, and work that
    the hook left running in the background holds them open.
    """

    def __init__(self) -> None:
        self._kept = Output()
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop = asyncio.get_running_loop()
        self._followed = False

    def follow(self) -> None:
        """Begin to read, and close this process' write end: from now on only the child has it."""
        os.close(self.write_end)
        self._followed = True
        self._loop.add_reader(self._read_end, self._drain)

    def read(self) -> Output:
        """Return the output so far."""
        self._drain()
        return self._kept

    def _drain(self) -> None:
        # Bounded: endless output must not block the event loop.
        for _ in range(16):
            try:
                part = os.read(self._read_end, 65_536)
            except BlockingIOError:
                return
            if not part:
                self._loop.remove_reader(self._read_end)
                return
            self._kept.add(part)

    def __enter__(self) -> "_Capture":
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        if not self._followed:
            os.close(self.write_end)


@contextlib.contextmanager
def _stdin(body: bytes) -> Iterator[IO[bytes]]:
    """Yield a file with `body`. Not a pipe: a hook that does not read its input must not block the agent."""
    with tempfile.TemporaryFile() as file:
        file.write(body)
        file.seek(0)
        yield file


def _last_line(text: bytes | bytearray) -> str:
    lines = text.decode(errors="replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it printed nothing on stderr")


def hook_environment(also: Collection[str], own: Mapping[str, str]) -> dict[str, str]:
    """Return what a hook gets: the allowed variables of this process, those named in `also`, and `own`."""
    passed = {name: value for name, value in os.environ.items() if _is_passed(name) or name in also}
    return {**passed, **own}


def _is_passed(name: str) -> bool:
    return name in PASSED or name.startswith(PASSED_PREFIXES)
