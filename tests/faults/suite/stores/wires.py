"""The routes between each process and the servers: proxies, on each of which any number of faults can be active.

A single server is given by the URL of its wire. With several servers, redsched learns addresses from Sentinels and
the cluster. So its processes connect to those, and are redirected to their wires as by a firewall rule
(`speech.go_by`). Servers do not know of it: traffic between them bypasses the wires.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.support.processes.proxy import LIMIT, Fault, Moment, Proxy, Reach

Play = Callable[[list[bytes]], Fault]
"""The effect on one command."""

Look = Callable[[Moment, list[bytes]], None]


Wires = Mapping[str, Sequence["Wire"]]
"""The wires of each process, by its name."""

HOST = "127.0.0.1"


class Wire(Proxy):
    """The route of one process to a server."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach)
        self.leads_to = self.port = 0
        """The server's port, and the port at which this wire listens."""
        self.strikes_readers = True
        self.plays: list[Play] = []
        self.looks: list[Look] = []
        self.watch = self._tell

    def next_fault(self, command: list[bytes]) -> Fault:
        """Return the effect of the first active fault that applies to a command."""
        for play in [*self.plays]:
            if (fault := play(command)) is not Fault.NONE:
                self.played[fault] += 1
                return fault
        return Fault.NONE

    def _tell(self, moment: Moment, command: list[bytes]) -> None:
        for look in [*self.looks]:
            look(moment, command)


@asynccontextmanager
async def wires(upstream: Path, folder: Path, names: Iterable[str]) -> AsyncIterator[Wires]:
    """Yield a wire for each name to the one server that has that socket."""
    async with AsyncExitStack() as stack:
        made: dict[str, Sequence[Wire]] = {}
        for name in names:
            socket = folder / f"{name}.sock"
            wire = Wire(lambda: asyncio.open_unix_connection(str(upstream), limit=LIMIT))
            wire.url = f"unix://{socket}"
            server = await asyncio.start_unix_server(wire.serve, str(socket), limit=LIMIT)
            stack.push_async_callback(wire.stop, server)
            made[name] = (wire,)
        yield made


@asynccontextmanager
async def wires_to_ports(ports: Sequence[int], names: Iterable[str]) -> AsyncIterator[Wires]:
    """Yield a wire for each name to each server that listens at one of those ports of loopback."""
    async with AsyncExitStack() as stack:
        yield {name: [await _wire_to(stack, port) for port in ports] for name in names}


async def _wire_to(stack: AsyncExitStack, port: int) -> Wire:
    wire = Wire(lambda: asyncio.open_connection(HOST, port, limit=LIMIT))
    server = await asyncio.start_server(wire.serve, HOST, 0, limit=LIMIT)
    wire.leads_to, wire.port = port, server.sockets[0].getsockname()[1]
    stack.push_async_callback(wire.stop, server)
    return wire


def shut(all_wires: Wires, by: object) -> None:
    """Reject connections until the same fault calls `reopen`, and end the existing ones."""
    for wire in every(all_wires):
        wire.shut_by.add(by)
        wire.cut()


def reopen(all_wires: Wires, by: object) -> None:
    """Accept connections again from processes that no other fault keeps out."""
    for wire in every(all_wires):
        wire.shut_by.discard(by)


def every(all_wires: Wires) -> Iterator[Wire]:
    """Return the wires of all processes."""
    return (wire for some in all_wires.values() for wire in some)
