"""Runs scripts: routes each call to its server, and resends calls that were lost or temporarily refused.

Calls of one process that are in flight to one server share a pipeline (`redsched.store.client.batcher`).

Resending is safe for every script of redsched, and only because each is idempotent by id: the second copy finds what
the first one did and returns the same reply. Calls are resent here and nowhere else, for `resend_for_s`; after that the
caller gets OutcomeUnknown, or StoreUnavailable if the call was never sent or a server replied that it has not run it.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from redis.asyncio import BlockingConnectionPool
from redis.exceptions import AskError, MovedError, ResponseError

from redsched import aio
from redsched.errors import InvalidRequest
from redsched.origin import Origin
from redsched.settings import Settings
from redsched.store.client.batcher import FIRST_PAUSE_S, LONGEST_PAUSE_S, Batcher, jittered
from redsched.store.client.call import Call, closing
from redsched.store.client.durability import durability_of
from redsched.store.client.pipeline import Counters, PipelineExecutor, load_scripts
from redsched.store.client.scripts import load_all
from redsched.store.codec.keys import Keys
from redsched.store.codec.wire import Reply
from redsched.store.topology.connection import LOST, to_redsched_error
from redsched.store.topology.router import Router

_DOUBLINGS = 6


class ScriptClient:
    """Sends scripts to the servers of a store. Create and `close` it inside the event loop."""

    def __init__(self, url: str, settings: Settings, router: Router, *, read_only: bool = False) -> None:
        self.url = url
        self.is_read_only = read_only
        """Whether scripts that write are refused before they are sent."""
        self.counters = Counters()
        self._settings = settings
        self._router = router
        self._exchange = PipelineExecutor(
            self.counters, durability_of(settings), settings.reply_timeout_s, self._resend_later
        )
        self._batchers: dict[tuple[BlockingConnectionPool, bool], Batcher] = {}
        self._resending: dict[Call, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether no call is in flight or waiting."""
        return not self._resending and all(batcher.idle for batcher in self._batchers.values())

    @property
    def waits(self) -> bool:
        """Whether the settings require durability, so that some calls wait for replicas or a disk."""
        return bool(self._exchange.durability)

    @property
    def enables_new_hosts(self) -> bool:
        """Whether hosts that report for the first time join enabled, unless something else was declared for them."""
        return self._settings.enable_new_hosts

    async def run(
        self,
        name: str,
        keys: Sequence[str],
        arguments: Sequence[str | int],
        durable: bool = False,
        origins: Sequence[Origin] = (),
    ) -> Reply:
        """Run one script and return its reply. Raises StoreUnavailable or OutcomeUnknown.

        `origins`: who causes it, one for each member of a call that several requests share; by default what runs now.

        With `durable`, return only once its writes are as durable as the settings require, and raise NotDurable if they
        are not in time. The first three keys of such a script are those of its cell (`Keys.head`).
        """
        if self._closed:
            raise closing()
        loop = asyncio.get_running_loop()
        script = load_all()[name]
        script.check(len(keys), len(arguments))
        if self.is_read_only and not script.read_only:
            raise InvalidRequest(f"{name}.lua writes, and this connection only reads: open one without read_only")
        verb = "EVALSHA_RO" if script.read_only else "EVALSHA"
        command = (verb, script.sha, len(keys), *keys, *script.with_origin(arguments, origins))
        deadline = loop.time() + self._settings.resend_for_s
        waits = durable and self.waits
        call = Call(script, tuple(keys), command, deadline, loop.create_future(), self.url, waits)
        self._route(call)
        return await call.reply

    async def load(self) -> None:
        """Load all scripts into the servers of the cells, ahead of the first calls. Raises StoreUnavailable.

        A connection that only reads loads none ahead: few of its calls run a script, and these load it.
        """
        if self.is_read_only:
            return
        try:
            for pool in {self._router.pool(Keys(name).meta) for name in self._settings.cells}:
                connection = await pool.get_connection()  # type: ignore[no-untyped-call]
                try:
                    await load_scripts(connection, set(load_all().values()))
                finally:
                    await pool.release(connection)
        except (*LOST, ResponseError) as error:
            raise to_redsched_error(error, self.url) from error

    async def close(self) -> None:
        """Stop sending; waiting calls raise OutcomeUnknown, or StoreUnavailable if they were never sent."""
        self._closed = True
        resending = list(self._resending)
        await aio.end_all(self._resending.values())
        for batcher in self._batchers.values():
            await batcher.close()
        for call in resending:
            call.closed()

    def _route(self, call: Call) -> None:
        pool = call.asking or self._router.pool(call.keys[0])
        lane = (pool, call.durable)
        if lane not in self._batchers:
            self._batchers[lane] = Batcher(pool, self._exchange, self._router, self._route)
        self._batchers[lane].add(call)

    def _resend_later(self, call: Call, error: ResponseError) -> None:
        """Resend a call that a server has not run, to the right server or after a pause; give up after its deadline."""
        if call.reply.done():
            return
        if call.deadline <= aio.now_s():
            call.refused(to_redsched_error(error, self.url))
            return
        again = aio.detached(self._resend(call, error), name="redsched-put-off")
        self._resending[call] = again
        again.add_done_callback(lambda _: self._resending.pop(call, None))

    async def _resend(self, call: Call, error: ResponseError) -> None:
        call.tries += 1
        pointed = isinstance(error, AskError)
        if not pointed or call.tries > 1:
            await asyncio.sleep(jittered(min(FIRST_PAUSE_S * 2 ** min(call.tries, _DOUBLINGS), LONGEST_PAUSE_S)))
        asks = pointed and not isinstance(error, MovedError)
        call.asking = self._router.asked(error) if asks else None  # type: ignore[arg-type]  # narrowed by `pointed`
        if not asks:
            with suppress(*LOST):  # no node replies now; the next attempt looks for the server again
                await self._router.invalidate(error)
        self._route(call)
