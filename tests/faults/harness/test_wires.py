"""The wires (proxied routes) of the fault suite: each process reaches each server over its own wire only."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from random import Random

import pytest

from tests.faults.suite.processes.speech import go_by
from tests.faults.suite.stores.wires import HOST, wires_to_ports
from tests.support.processes.connections import Connections
from tests.support.processes.proxy import Fault, Frames, Moment, words_of

PING = b"*1\r\n$4\r\nPING\r\n"


@asynccontextmanager
async def answering() -> AsyncIterator[int]:
    """Run a server that replies PONG to each PING; yield its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            while await reader.readuntil(b"PING\r\n"):
                writer.write(b"+PONG\r\n")
        writer.close()

    there = Connections()
    server = await asyncio.start_server(lambda reader, writer: there.begin(serve(reader, writer), writer), HOST, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await there.end(server)


async def asked(port: int) -> bytes:
    """Send a PING; return the reply, or b"" if the connection ends. Looks up `open_connection` as redis-py does."""
    reader, writer = await asyncio.open_connection(host=HOST, port=port)
    try:
        writer.write(PING)
        return await reader.readline()
    except OSError:
        return b""
    finally:
        writer.close()


@pytest.fixture(autouse=True)
def open_connection_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "open_connection", asyncio.open_connection)


async def test_a_process_lands_on_its_own_wire_to_the_server_that_it_connects_to() -> None:
    async with answering() as port, answering() as other, wires_to_ports([port, other], ["mine", "yours"]) as wires:
        met: list[tuple[str, int]] = []
        for name, some in wires.items():
            for wire in some:
                note = partial(met.append, (name, wire.leads_to))
                wire.looks.append(lambda moment, _, it=note: it() if moment is Moment.COMES else None)  # type: ignore[misc]
        direct = asyncio.open_connection
        go_by({str(wire.leads_to): wire.port for wire in wires["mine"]})
        for wire in wires["mine"]:
            wire.reach = partial(direct, HOST, wire.leads_to)
        assert await asked(port) == b"+PONG\r\n"
        assert await asked(other) == b"+PONG\r\n"
        assert met == [("mine", port), ("mine", other)]


async def test_faults_on_a_wire_strike_who_goes_by_it() -> None:
    async with answering() as port, wires_to_ports([port], ["mine", "yours"]) as wires:
        wires["mine"][0].plays.append(lambda _: Fault.LOSE_REPLY)
        assert await asked(wires["yours"][0].port) == b"+PONG\r\n"
        assert await asked(wires["mine"][0].port) == b""
        wires["mine"][0].plays.clear()
        wires["mine"][0].shut_by.add("test")
        assert await asked(wires["mine"][0].port) == b""


async def test_a_wire_to_a_server_that_is_gone_ends_the_connection() -> None:
    async with answering() as port:
        pass
    async with wires_to_ports([port], ["mine"]) as wires:
        assert await asked(wires["mine"][0].port) == b""


FRAMES = [
    b"+OK\r\n",
    b"-ERR no\r\n",
    b":12\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"$0\r\n\r\n",
    b"$6\r\n\r\n$1\r\n\r\n",
    b"*3\r\n*2\r\n$1\r\na\r\n*1\r\n:7\r\n$-1\r\n+b\r\n",
]


@pytest.mark.parametrize("seed", range(20))
async def test_frames_are_found_however_they_arrive(seed: int) -> None:
    """A connection delivers several replies at once, or parts of one."""
    rng = Random(seed)
    frames, reader = rng.sample(FRAMES, len(FRAMES)), asyncio.StreamReader()
    found = asyncio.create_task(frames_of(reader))
    raw = b"".join(frames)
    while raw:
        size = rng.choice((1, 2, 5, 40))
        reader.feed_data(raw[:size])
        raw = raw[size:]
        await asyncio.sleep(0)
    reader.feed_eof()
    assert await found == frames


async def frames_of(reader: asyncio.StreamReader) -> list[bytes]:
    """Return all frames until the connection ends."""
    frames, found = Frames(reader), list[bytes]()
    with contextlib.suppress(EOFError):
        while True:
            found.append(await frames.next())
    return found


def test_words_of_a_command_may_contain_line_ends() -> None:
    assert words_of(b"*3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n") == [b"SET", b"a\r\nb", b""]
