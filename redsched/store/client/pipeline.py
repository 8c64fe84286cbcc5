"""Sending one batch of calls over one connection, and interpreting the replies."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AskError, ClusterDownError, NoScriptError, ReadOnlyError, ResponseError, TryAgainError

from redsched.errors import NotDurable, StoreUnavailable
from redsched.pacing import paced
from redsched.store.client.call import Call
from redsched.store.client.durability import Durability
from redsched.store.client.packing import send
from redsched.store.client.replaced import ReplacedPrimaries
from redsched.store.client.reply_limit import ReplyLimit
from redsched.store.client.scripts import Script, load_all
from redsched.store.topology.connection import (
    UNREADABLE,
    is_busy,
    is_out_of_memory,
    out_of_memory,
    to_redsched_error,
)

MAX_RELOADS = 3
TOUCH = "touch"

LATER = (AskError, ClusterDownError, TryAgainError)
"""Errors of calls that were not run, but may succeed later or on another server.

MOVED is an AskError too, MASTERDOWN a ClusterDownError."""


@dataclass(slots=True)
class Counters:
    """Counts of events, for metrics and tests."""

    pipelines: int = 0
    calls: int = 0
    resent: int = 0
    reloaded: int = 0
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class PipelineExecutor:
    """Sends batches. `later` is called with each call that the server could not run yet, and the server's error."""

    counters: Counters
    durability: Durability
    reply_timeout_s: float
    """How long to wait for the server's next reply, in seconds."""
    later: Callable[[Call, ResponseError], None]
    replaced: ReplacedPrimaries = field(default_factory=ReplacedPrimaries)

    async def send(self, connection: AbstractConnection, batch: Sequence[Call]) -> None:
        """Send a batch and resolve its calls, loading scripts that the server lacks.

        Raises what redis-py raises when the connection breaks; calls without a reply may then have been run.
        """
        durable = batch[0].durable
        refused = list(batch)
        for load in range(MAX_RELOADS + 1):
            if load:
                # A server lacks scripts after a flush, a restart or a failover: load them and resend the refused calls.
                self.counters.reloaded += 1
                await load_scripts(connection, {call.script for call in refused})
            refused, missing = await self._send_once(connection, refused, durable)
            if not durable or not refused:
                _resolve(batch, missing)
            if not refused:
                return
        for call in refused:
            call.refused(StoreUnavailable("the store drops scripts as fast as they are loaded: try again"))

    async def _send_once(
        self, connection: AbstractConnection, calls: Sequence[Call], durable: bool
    ) -> tuple[list[Call], str]:
        """Return the calls whose script the server lacks, and what the others lack in durability, as text."""
        behind = self.durability.commands if durable else ()
        if durable and calls[-1].script.name != TOUCH:
            calls = [*calls, _touch(calls[-1])]
        self.counters.pipelines += 1
        self.counters.calls += len(calls)
        for call in calls:
            call.maybe_run = True
            call.answer = None  # the reply to an earlier attempt was not passed on, and may be outdated
        await send(connection, [*(command for call in calls for command in _command(call)), *behind])
        async with ReplyLimit(self.reply_timeout_s) as limit:
            full = list[Call]()
            refused = [call async for call in paced(calls) if await self._refused(connection, call, limit, full)]
            waited = [await _said(connection, limit) for _ in behind]
            if full:
                await _refuse_all(full, connection, limit)
            if not durable:
                return refused, ""
        written = calls[-1].answer is not None
        return refused, self.durability.shortfall(waited) if written else "nothing more could be written"

    async def _refused(self, connection: AbstractConnection, call: Call, limit: ReplyLimit, full: list[Call]) -> bool:
        """Read one reply. Return whether the server lacks the script. Adds the call to `full` if it lacks memory."""
        if call.asking:
            await limit.next_reply(connection)
        try:
            call.answer = await limit.next_reply(connection)
        except NoScriptError:
            return True
        except ReadOnlyError as error:
            # The primary has become a replica: the call was not run, and a new connection leads to the new primary.
            raise OSError(str(error)) from error
        except LATER as error:
            self.counters.elsewhere += 1
            self.later(call, error)
        except ResponseError as error:
            if str(error).startswith(UNREADABLE):
                raise OSError(str(error)) from error
            if is_busy(error):  # a script runs for long: this call was not run, and will be once that has ended
                self.later(call, error)
            elif is_out_of_memory(error):
                full.append(call)
            else:
                call.refused(to_redsched_error(error, call.url))
        else:
            if call.script.is_fenced and self.replaced.is_outdated(call.keys[0], call.answer):
                call.answer = None
                raise OSError("this primary was replaced: its answer is of an epoch that is over")
        return False


async def _refuse_all(calls: Sequence[Call], connection: AbstractConnection, limit: ReplyLimit) -> None:
    """Refuse calls that the server was out of memory for, with what it uses as far as it says that."""
    memory = None
    try:
        await send(connection, [("INFO", "memory")])
        memory = _memory_of(await limit.next_reply(connection))
    except ResponseError:
        pass  # a user of the store without the permission
    finally:
        for call in calls:
            call.refused(out_of_memory(call.url, memory))


def _memory_of(info: str) -> tuple[int, int] | None:
    """Return the memory that a server uses, and its limit, from its INFO; None if that does not say it."""
    found = dict(line.partition(":")[::2] for line in info.splitlines())
    if "used_memory" not in found or "maxmemory" not in found:
        return None
    return int(found["used_memory"]), int(found["maxmemory"])


async def load_scripts(connection: AbstractConnection, scripts: set[Script]) -> None:
    """Load scripts into a server. Only missing ones are sent: all scripts together are a megabyte."""
    ordered = list(scripts)
    await send(connection, [("SCRIPT", "EXISTS", *(script.sha for script in ordered))])
    known = await connection.read_response()
    lacking = [script for script, is_known in zip(ordered, known, strict=True) if not is_known]
    if lacking:
        await send(connection, [("SCRIPT", "LOAD", script.text) for script in lacking])
    for _ in lacking:
        await connection.read_response()


def _command(call: Call) -> tuple[tuple[str | int, ...], ...]:
    return (("ASKING",), call.command) if call.asking else (call.command,)


def _touch(last: Call) -> Call:
    """Return a call that always writes, to the same cell as `last`. Its reply is not used."""
    script = load_all()[TOUCH]
    unused = asyncio.get_running_loop().create_future()
    unused.cancel()
    keys = last.keys[:3]
    return Call(script, keys, ("EVALSHA", script.sha, 3, *keys, ""), last.deadline, unused, last.url, durable=True)


def _resolve(batch: Sequence[Call], missing: str) -> None:
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
