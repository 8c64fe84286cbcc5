"""A process of the system as the suite sees it: start it, talk to it, kill it as a power cut would, restart it."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from tests.faults.suite.processes.nursery import Forked, Nursery

START_S = 60.0
ANSWER_S = 60.0
LONGEST_LINE = 1 << 24
LONGEST_LOG = 1 << 20

Words = dict[str, Any]


class Child:
    """One process. `on_word` receives all its messages in order, including those sent just before it was killed."""

    def __init__(
        self,
        name: str,
        nursery: Nursery,
        module: str,
        words: Callable[[], Words],
        on_word: Callable[[str, Words], None],
        log: Path,
    ) -> None:
        self.name = name
        self.kills = 0
        self._nursery = nursery
        self._module = module
        self._words = words
        self._on_word = on_word
        self._log = log
        self._process: Forked | None = None
        self._input: asyncio.WriteTransport | None = None
        self._reading: list[asyncio.Task[None]] = []
        self._heard: dict[str, asyncio.Future[Words]] = {}
        self._starting = asyncio.Lock()

    @property
    def runs(self) -> bool:
        """Return whether the process exists."""
        return self._process is not None and self._process.runs

    async def begin(self, **changes: Any) -> None:
        """Start the process unless it runs, and send its first messages; `ready` is set when it is at work."""
        async with self._starting:
            if self.runs:
                return
            await asyncio.gather(*self._reading)
            pipes = [os.pipe() for _ in range(3)]
            (its_input, ours), (output, its_output), (errors, its_errors) = pipes
            self._process = await self._nursery.fork(self._module, (its_input, its_output, its_errors))
            for one in (its_input, its_output, its_errors):
                os.close(one)
            if self._input is not None:
                self._input.close()
            self._input = await _writing(ours)
            self._reading = [
                asyncio.create_task(self._read(self._process, output)),
                asyncio.create_task(self._note(errors)),
            ]
            self._send({**self._words(), **changes})

    async def ready(self) -> None:
        """Wait until the process has reported that it is ready. Raises TimeoutError, ChildEnded."""
        await self._answer("ready", START_S)

    async def ask(self, do: str, said: str, **words: Any) -> Words:
        """Send a message, and wait for the reply that it is done. Raises TimeoutError, ChildEnded."""
        answer = asyncio.ensure_future(self._answer(said, ANSWER_S))
        await asyncio.sleep(0)
        self.tell(do, **words)
        return await answer

    def tell(self, do: str, **words: Any) -> None:
        """Send a message if the process runs."""
        if self.runs:
            self._send({"do": do, **words})

    def kill(self) -> None:
        """End the process at once. Messages that it has already sent are still received."""
        if self.runs and self._process is not None:
            self.kills += 1
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def ended(self) -> None:
        """Wait until the process has ended and all its messages are received."""
        process, reading = self._process, self._reading
        if process is not None:
            # This process's own: by the time it has ended, another may have been started in its place.
            await process.ended()
            await asyncio.gather(*reading)

    def log_tail(self, lines: int = 20) -> str:
        """Return the end of the process's log."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    async def _answer(self, said: str, within_s: float) -> Words:
        waiting = self._heard.setdefault(said, asyncio.get_running_loop().create_future())
        try:
            return await asyncio.wait_for(asyncio.shield(waiting), within_s)
        except TimeoutError:
            raise TimeoutError(f"{self.name} did not say {said!r} within {within_s:g} s; {self.log_tail()}") from None

    def _send(self, words: Words) -> None:
        assert self._input is not None
        self._input.write(json.dumps(words).encode() + b"\n")

    async def _read(self, process: Forked, descriptor: int) -> None:
        async with _reading(descriptor) as output:
            while line := await output.readline():
                if not line.endswith(b"\n"):
                    break  # killed while writing a line
                self._hear(json.loads(line))
        code = await process.ended()
        self._heard, waiting_still = {}, self._heard
        for one in waiting_still.values():
            if not one.done():
                one.set_exception(ChildEnded(f"{self.name} ended: {self.log_tail()}"))
                one.exception()
        self._on_word("gone", {"code": code})

    def _hear(self, words: Words) -> None:
        said = words.pop("said")
        if (waiting := self._heard.pop(said, None)) is not None and not waiting.done():
            waiting.set_result(words)
        self._on_word(said, words)

    async def _note(self, descriptor: int) -> None:
        """The log of the process, written by the suite: a process whose disk is full cannot write one."""
        async with _reading(descriptor) as errors:
            while part := await errors.read(1 << 16):
                await asyncio.to_thread(append, self._log, part)


async def _writing(descriptor: int) -> asyncio.WriteTransport:
    """Write to a pipe."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(descriptor, "wb", 0))
    return transport


@asynccontextmanager
async def _reading(descriptor: int) -> AsyncIterator[asyncio.StreamReader]:
    """Read from a pipe until its end, and close it."""
    reader = asyncio.StreamReader(LONGEST_LINE)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    with closing(transport):
        yield reader


def append(log: Path, part: bytes) -> None:
    """Append to a log, and keep only its latest half if it is too long: a plan may run for hours."""
    with log.open("ab+") as file:
        file.write(part)
        if file.tell() > LONGEST_LOG:
            file.seek(-LONGEST_LOG // 2, 2)
            latest = file.read()
            file.truncate(0)
            file.write(latest)


class ChildEnded(Exception):
    """A process ended while the suite waited for its reply."""


Children = Mapping[str, Child]
