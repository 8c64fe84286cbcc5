"""Runs scripts: shares pipelines, heals NOSCRIPT, and sends a call again whose reply was lost.

Calls of one process that are in flight together share a pipeline: while one is on its way, those that arrive gather
and go out together when it is back. A lone call goes out at once; nobody waits for company.

Sending again is right for every script of ours, and only because each is idempotent by id: the second copy finds what
the first one did and answers the same. It is done here and nowhere else, for `resend_for_s`; after that the caller gets
OutcomeUnknown, or StoreUnavailable when nothing was ever sent.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import hiredis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import NoScriptError, ReadOnlyError, ResponseError

from redsched import tasks
from redsched.errors import OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.settings import Settings
from redsched.store.connection import LOST, as_ours, without_password, writer_pool
from redsched.store.scripts import Script, load_all

MOST_IN_PIPELINE = 256
MOST_RELOADS = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0

Reply = list[Any]
"""What a script returns: a flat array, its first value the outcome's word."""


@dataclass(slots=True, eq=False)
class _Call:
    script: Script
    command: tuple[str | int, ...]
    deadline: float
    reply: asyncio.Future[Reply]
    maybe_run: bool = False
    """It was sent at least once."""
    unanswered: bool = False
    """A sending of it was lost: whatever later ones meet, that one may have been carried out."""


@dataclass(slots=True)
class _Counters:
    """How often things happened, for metrics and tests."""

    pipelines: int = 0
    calls: int = 0
    resent: int = 0
    reloaded: int = 0


@dataclass(slots=True)
class Runner:
    """Sends scripts over one connection. Make it inside the event loop; `close` it there."""

    url: str
    settings: Settings
    counters: _Counters = field(default_factory=_Counters)
    _waiting: list[_Call] = field(default_factory=list)
    _pump: asyncio.Task[None] | None = None
    _closed: bool = False
    _pool: BlockingConnectionPool = field(init=False)

    def __post_init__(self) -> None:
        self._pool = writer_pool(self.url, self.settings)

    async def run(self, name: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Reply:
        """Run one script and return its reply. Raises StoreUnavailable or OutcomeUnknown."""
        if self._closed:
            raise _closing()
        loop = asyncio.get_running_loop()
        script = load_all()[name]
        verb = "EVALSHA_RO" if script.read_only else "EVALSHA"
        command = (verb, script.sha, len(keys), *keys, *arguments)
        call = _Call(script, command, loop.time() + self.settings.resend_for_s, loop.create_future())
        self._waiting.append(call)
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._send_all(), name="redsched-scripts")
        return await call.reply

    async def load(self) -> None:
        """Load all scripts now, so that the first call finds them. Raises StoreUnavailable."""
        try:
            connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            try:
                await self._load(connection, list(load_all().values()))
            finally:
                await self._pool.release(connection)
        except (*LOST, ResponseError) as error:
            raise as_ours(error, self.url) from error

    async def close(self) -> None:
        """End the connection; calls still waiting raise OutcomeUnknown, or StoreUnavailable where nothing was sent."""
        self._closed = True
        await tasks.end(self._pump)
        for call in self._waiting:
            _fail(call, self._lost(call, _closing()) if call.maybe_run else _closing())
        self._waiting.clear()
        await self._pool.disconnect()

    async def _send_all(self) -> None:
        pause = FIRST_PAUSE_S
        while self._waiting:
            batch = [call for call in self._waiting[:MOST_IN_PIPELINE] if not call.reply.done()]
            del self._waiting[:MOST_IN_PIPELINE]
            if not batch:  # whoever called has gone away
                continue
            try:
                await self._send(batch)
                pause = FIRST_PAUSE_S
            except LOST as error:
                self._waiting[:0] = self._give_up_late(batch, error)
                # Jitter, so that the processes which lost the store together do not come back together.
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, LONGEST_PAUSE_S)
            except asyncio.CancelledError:
                self._waiting[:0] = batch
                raise
            except Exception as error:  # whatever it is, no caller may wait for ever
                for call in batch:
                    _fail(call, error)

    def _give_up_late(self, batch: list[_Call], error: BaseException) -> list[_Call]:
        now = asyncio.get_running_loop().time()
        left = [call for call in batch if not call.reply.done()]
        for call in left:
            call.unanswered = call.maybe_run
            if call.deadline <= now:
                _fail(call, self._lost(call, error))
        again = [call for call in left if call.deadline > now]
        self.counters.resent += len(again)
        return again

    def _lost(self, call: _Call, error: BaseException) -> RedschedError:
        if not call.maybe_run:
            return as_ours(error, self.url)
        return OutcomeUnknown(
            f"{call.script.name} was sent to the store at {without_password(self.url)} and no answer came: {error}; "
            "send it again with the same id to learn its outcome"
        )

    def _refused(self, call: _Call, error: RedschedError) -> None:
        _fail(call, self._lost(call, error) if call.unanswered else error)

    async def _send(self, batch: list[_Call]) -> None:
        connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        try:
            refused = await self._exchange(connection, batch)
            for _ in range(MOST_RELOADS):
                if not refused:
                    return
                # After a flush, a restart or a failover: load, and send only the refused ones again.
                self.counters.reloaded += 1
                await self._load(connection, [call.script for call in refused])
                refused = await self._exchange(connection, refused)
            for call in refused:
                self._refused(call, StoreUnavailable("the store forgets scripts as fast as they are loaded: try again"))
        except BaseException:
            # Replies may still be on their way; the next call must not read them as its own.
            await connection.disconnect(nowait=True)
            raise
        finally:
            await self._pool.release(connection)

    async def _exchange(self, connection: AbstractConnection, batch: list[_Call]) -> list[_Call]:
        self.counters.pipelines += 1
        self.counters.calls += len(batch)
        for call in batch:
            call.maybe_run = True
        # Not by redis-py, whose packing of such long commands is six times as slow: a quarter of a whole selection.
        packed = (hiredis.pack_command(call.command) for call in batch)  # type: ignore[arg-type]  # its stub: one word
        await connection.send_packed_command(b"".join(packed))
        refused = []
        for call in batch:
            try:
                reply = await connection.read_response()
            except NoScriptError:
                refused.append(call)
            except ReadOnlyError as error:
                # The primary has become a replica: nothing was run, and another connection finds the new one.
                raise OSError(str(error)) from error
            except ResponseError as error:
                self._refused(call, as_ours(error, self.url))
            else:
                if not call.reply.done():
                    call.reply.set_result(reply)
        return refused

    async def _load(self, connection: AbstractConnection, scripts: Sequence[Script]) -> None:
        texts = {script.sha: script.text for script in scripts}
        await connection.send_packed_command(
            connection.pack_commands([("SCRIPT LOAD", text) for text in texts.values()])
        )
        for _ in texts:
            await connection.read_response()


def _closing() -> StoreUnavailable:
    return StoreUnavailable("this process has closed its connection to the store")


def _fail(call: _Call, error: BaseException) -> None:
    if not call.reply.done():
        call.reply.set_exception(error)
