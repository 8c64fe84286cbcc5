"""A process of the system as the suite sees it: begun, told, heard, killed as a power cut would, begun anew."""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.faults.suite.nursery import Forked, Nursery

START_S = 60.0
ANSWER_S = 60.0
LONGEST_LINE = 1 << 24
LONGEST_LOG = 1 << 20

Words = dict[str, Any]


class Child:
    """One process. `on_word` hears everything that it says, in order, also what it said just before it was killed."""

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
        """Whether the process exists."""
        return self._process is not None and self._process.runs

    async def begin(self, **changes: Any) -> None:
        """Start the process, unless it runs, and give it its first words; `ready` tells that it is at work."""
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
                asyncio.create_task(self._read(self._process, await _reading(output))),
                asyncio.create_task(self._note(await _reading(errors))),
            ]
            self._send({**self._words(), **changes})

    async def ready(self) -> None:
        """Wait until it has said that it is ready. Raises TimeoutError, ChildEnded."""
        await self._answer("ready", START_S)

    async def ask(self, do: str, said: str, **words: Any) -> Words:
        """Tell it to do something, and wait for the word that it is done. Raises TimeoutError, ChildEnded."""
        answer = asyncio.ensure_future(self._answer(said, ANSWER_S))
        await asyncio.sleep(0)
        self.tell(do, **words)
        return await answer

    def tell(self, do: str, **words: Any) -> None:
        """Tell it to do something, where it runs."""
        if self.runs:
            self._send({"do": do, **words})

    def kill(self) -> None:
        """End it at once. Whatever it had said by then is still heard."""
        if self.runs and self._process is not None:
            self.kills += 1
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def ended(self) -> None:
        """Wait until it has ended, and all that it said has been heard."""
        process, reading = self._process, self._reading
        if process is not None:
            # Of this process: by the time it has ended, another may have been begun in its place.
            await process.ended()
            await asyncio.gather(*reading)

    def log_tail(self, lines: int = 20) -> str:
        """The end of what it logged."""
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

    async def _read(self, process: Forked, output: asyncio.StreamReader) -> None:
        while line := await output.readline():
            if not line.endswith(b"\n"):
                break  # killed in the middle of it
            words: Words = json.loads(line)
            said = words.pop("said")
            if (waiting := self._heard.pop(said, None)) is not None and not waiting.done():
                waiting.set_result(words)
            self._on_word(said, words)
        code = await process.ended()
        self._heard, waiting_still = {}, self._heard
        for one in waiting_still.values():
            if not one.done():
                one.set_exception(ChildEnded(f"{self.name} ended: {self.log_tail()}"))
                one.exception()
        self._on_word("gone", {"code": code})

    async def _note(self, errors: asyncio.StreamReader) -> None:
        """Its log, written by the suite: a process whose disk is full can write none."""
        while part := await errors.read(1 << 16):
            await asyncio.to_thread(append, self._log, part)


async def _writing(descriptor: int) -> asyncio.WriteTransport:
    """Write into a pipe."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(descriptor, "wb", 0))
    return transport


async def _reading(descriptor: int) -> asyncio.StreamReader:
    """Read from a pipe, until its end."""
    reader = asyncio.StreamReader(LONGEST_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0))
    return reader


def append(log: Path, part: bytes) -> None:
    """Add to a log, and leave only its latest half where it has become too long: a plan may go on for hours."""
    with log.open("ab+") as file:
        file.write(part)
        if file.tell() > LONGEST_LOG:
            file.seek(-LONGEST_LOG // 2, 2)
            latest = file.read()
            file.truncate(0)
            file.write(latest)


class ChildEnded(Exception):
    """A process ended while something was asked of it."""


Children = Mapping[str, Child]
