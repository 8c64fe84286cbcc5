"""Servers inside tests: connections that they accept before they are closed are closed with them."""

import asyncio
import gc
import socket

import pytest

from tests.support.processes.connections import Connections


@pytest.mark.parametrize("turns", range(6))
def test_what_is_accepted_as_a_server_is_closed_is_not_left_open(turns: int, recwarn: pytest.WarningsRecorder) -> None:
    """This holds at whatever moment between the client's connect and its serving the server is closed."""

    async def accept_and_close() -> int:
        there, served = Connections(), list[asyncio.StreamWriter]()

        async def serve(writer: asyncio.StreamWriter) -> None:
            served.append(writer)
            await asyncio.Event().wait()

        server = await asyncio.start_server(lambda _, writer: there.begin(serve(writer), writer), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            for _ in range(turns):
                await asyncio.sleep(0)
            await there.end(server)
        return len(served)

    gc.collect()  # ignore leftovers of other tests
    recwarn.clear()
    served = asyncio.run(accept_and_close())
    gc.collect()
    assert [str(one.message) for one in recwarn] == []
    assert served == (turns > 1)
