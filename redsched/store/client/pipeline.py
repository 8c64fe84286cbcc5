"""One batch of calls over one connection, there and back: what goes on the wire and what the replies mean."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import hiredis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AskError, ClusterDownError, NoScriptError, ReadOnlyError, ResponseError, TryAgainError

from redsched.errors import NotDurable, StoreUnavailable
from redsched.pacing import paced
from redsched.store.client.call import Call
from redsched.store.client.durability import Durability
from redsched.store.client.reply_limit import ReplyLimit
from redsched.store.client.scripts import Script, load_all
from redsched.store.topology.connection import UNREADABLE, as_ours

MAX_RELOADS = 3
TOUCH = "touch"

LATER = (AskError, ClusterDownError, TryAgainError)
"""Not run, and may be soon, here or elsewhere. MOVED is an AskError too, MASTERDOWN a ClusterDownError."""


@dataclass(slots=True)
class Counters:
    """How often things happened, for metrics and tests."""

    pipelines: int = 0
    calls: int = 0
    resent: int = 0
    reloaded: int = 0
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class PipelineExecutor:
    """How batches are sent. `later` is told which calls were not run for now, and in which words."""

    counters: Counters
    durability: Durability
    reply_timeout_s: float
    """How long the server may take until its next reply."""
    later: Callable[[Call, ResponseError], None]

    async def send(self, connection: AbstractConnection, batch: Sequence[Call]) -> None:
        """Send a batch and answer those who wait for it, loading what the server does not know.

        Raises what redis-py raises when the connection breaks; then the calls left unanswered may have been run.
        """
        durable = batch[0].durable
        refused = list(batch)
        for load in range(MAX_RELOADS + 1):
            if load:
                # After a flush, a restart or a failover: load, and send only the refused ones again.
                self.counters.reloaded += 1
                await load_scripts(connection, {call.script for call in refused})
            refused, missing = await self._once(connection, refused, durable)
            if not durable or not refused:
                _hand_over(batch, missing)
            if not refused:
                return
        for call in refused:
            call.refused(StoreUnavailable("the store forgets scripts as fast as they are loaded: try again"))

    async def _once(
        self, connection: AbstractConnection, calls: Sequence[Call], durable: bool
    ) -> tuple[list[Call], str]:
        """Those whose script the server does not know, and what the others lack in durability."""
        behind = self.durability.commands if durable else ()
        if durable and calls[-1].script.name != TOUCH:
            calls = [*calls, _touch(calls[-1])]
        self.counters.pipelines += 1
        self.counters.calls += len(calls)
        for call in calls:
            call.maybe_run = True
            call.answer = None  # one to an earlier sending was not handed over, and may not hold any more
        # Not by redis-py, whose packing of such long commands is six times as slow: a quarter of a whole selection.
        words = [*(word for call in calls for word in _words(call)), *behind]
        await connection.send_packed_command(b"".join(map(hiredis.pack_command, words)))  # type: ignore[arg-type]  # its stub: one word
        async with ReplyLimit(self.reply_timeout_s) as limit:
            refused = [call async for call in paced(calls) if await self._refused(connection, call, limit)]
            if not durable:
                return refused, ""
            waited = [await _said(connection, limit) for _ in behind]
        written = calls[-1].answer is not None
        return refused, self.durability.shortfall(waited) if written else "nothing more could be written"

    async def _refused(self, connection: AbstractConnection, call: Call, limit: ReplyLimit) -> bool:
        """Read one reply. Whether the server does not know the script."""
        if call.asking:
            await limit.next_reply(connection)
        try:
            call.answer = await limit.next_reply(connection)
        except NoScriptError:
            return True
        except ReadOnlyError as error:
            # The primary has become a replica: nothing was run, and another connection finds the new one.
            raise OSError(str(error)) from error
        except LATER as error:
            self.counters.elsewhere += 1
            self.later(call, error)
        except ResponseError as error:
            if str(error).startswith(UNREADABLE):
                raise OSError(str(error)) from error
            call.refused(as_ours(error, call.url))
        return False


async def load_scripts(connection: AbstractConnection, scripts: set[Script]) -> None:
    """Have a server know some scripts."""
    await connection.send_packed_command(connection.pack_commands([("SCRIPT LOAD", one.text) for one in scripts]))
    for _ in scripts:
        await connection.read_response()


def _words(call: Call) -> tuple[tuple[str | int, ...], ...]:
    return (("ASKING",), call.command) if call.asking else (call.command,)


def _touch(last: Call) -> Call:
    """A call that always writes, to the cell of another; nobody waits for it."""
    script = load_all()[TOUCH]
    nobody = asyncio.get_running_loop().create_future()
    nobody.cancel()
    keys = last.keys[:3]
    return Call(script, keys, ("EVALSHA", script.sha, 3, *keys), last.deadline, nobody, last.url, durable=True)


def _hand_over(batch: Sequence[Call], missing: str) -> None:
    for call in batch:
        if missing and call.answer is not None:
            detail = f"{call.script.name} was run, and is not as durable as REDSCHED_DURABILITY asks: {missing}"
            call.fail(NotDurable(detail, reply=call.answer))
        call.resolve()


async def _said(connection: AbstractConnection, limit: ReplyLimit) -> Any:
    try:
        return await limit.next_reply(connection)
    except ResponseError as error:
        return error
