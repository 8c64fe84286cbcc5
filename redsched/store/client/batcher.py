"""Batcher: collects calls while a batch is in flight, and sends them together after the replies to that batch."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from redsched import aio
from redsched.store.client.call import Call
from redsched.store.client.pipeline import PipelineExecutor
from redsched.store.topology.connection import LOST, to_redsched_error
from redsched.store.topology.router import Router

MAX_IN_PIPELINE = 256
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0


class Batcher:
    """Sends calls over one connection, one batch at a time. A lone call is sent at once, without waiting for others.

    The connection is taken from the pool once and kept: taking and returning it costs as much as a batch of one call.

    When the connection breaks, the batcher pauses, has the router check whether the server is still the right one, and
    passes all waiting calls to `route`, which may choose another batcher.
    """

    def __init__(
        self, pool: BlockingConnectionPool, exchange: PipelineExecutor, router: Router, route: Callable[[Call], None]
    ) -> None:
        self._pool = pool
        self._exchange = exchange
        self._router = router
        self._route = route
        self._waiting: list[Call] = []
        self._task: asyncio.Task[None] | None = None
        self._connection: AbstractConnection | None = None

    @property
    def idle(self) -> bool:
        """Whether no call is in flight or waiting."""
        return self._task is None or self._task.done()

    def add(self, call: Call) -> None:
        """Queue a call and send it as soon as possible."""
        self._waiting.append(call)
        if self.idle:
            self._task = aio.detached(self._send_all(), name="redsched-scripts")

    async def close(self) -> None:
        """Stop, return the connection to the pool, and fail the waiting calls."""
        await aio.end(self._task)
        if self._connection is not None:
            await self._pool.release(self._connection)
            self._connection = None
        for call in self._waiting:
            call.closed()
        self._waiting.clear()

    async def _send_all(self) -> None:
        pause = FIRST_PAUSE_S
        while self._waiting:
            batch = [call for call in self._waiting[:MAX_IN_PIPELINE] if not call.reply.done()]
            del self._waiting[:MAX_IN_PIPELINE]
            if not batch:  # all callers were cancelled
                continue
            try:
                await self._send(batch)
                pause = FIRST_PAUSE_S
            except LOST as error:
                self._waiting[:0] = self._give_up_late(batch, error)
                await asyncio.sleep(jittered(pause))
                pause = min(pause * 2, LONGEST_PAUSE_S)
                await self._look_again(error)
            except asyncio.CancelledError:
                self._waiting[:0] = batch
                raise
            except ResponseError as error:  # from loading scripts: calls refused with NOSCRIPT were not run
                for call in batch:
                    call.lost(error) if call.answer else call.refused(to_redsched_error(error, call.url))
            except Exception as error:  # whatever the error is, no caller may wait forever
                for call in batch:
                    call.fail(error)

    async def _send(self, batch: list[Call]) -> None:
        connection = await self._connected()
        try:
            await self._exchange.send(connection, batch)
        except BaseException:
            # Replies may still be on their way; the next call must not read them as its own.
            await connection.disconnect(nowait=True)
            raise

    async def _connected(self) -> AbstractConnection:
        if self._connection is None:
            self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
        else:
            await self._pool.ensure_connection(self._connection)
        return self._connection

    def _give_up_late(self, batch: list[Call], error: BaseException) -> list[Call]:
        now = aio.now_s()
        left = [call for call in batch if not call.reply.done()]
        for call in left:
            call.unanswered = call.maybe_run
            call.asking = None
            if call.deadline <= now:
                call.lost(error)
        again = [call for call in left if call.deadline > now]
        self._exchange.counters.resent += len(again)
        return again

    async def _look_again(self, error: BaseException) -> None:
        with suppress(*LOST):  # no node replies now; the next attempt looks for the server again
            await self._router.invalidate(error)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._route(call)


def jittered(pause_s: float) -> float:
    """Return the pause with jitter, so that processes that lost a server together do not reconnect together."""
    return pause_s * random.uniform(0.5, 1.5)
