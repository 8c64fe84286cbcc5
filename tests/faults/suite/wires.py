"""The way between each process and the store: a proxy of its own, on which any number of faults can be at work."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.support.proxy import LIMIT, Fault, Moment, Proxy

Play = Callable[[list[bytes]], Fault]
"""What happens to one command."""

Look = Callable[[Moment, list[bytes]], None]


class Wire(Proxy):
    """One process' way to the store."""

    def __init__(self, upstream: Path, socket: Path) -> None:
        super().__init__(upstream, socket)
        self.strikes_readers = True
        self.plays: list[Play] = []
        self.looks: list[Look] = []
        self.watch = self._tell

    def next_fault(self, command: list[bytes]) -> Fault:
        """The first fault that any of those at work has for a command."""
        for play in [*self.plays]:
            if (fault := play(command)) is not Fault.NONE:
                self.played[fault] += 1
                return fault
        return Fault.NONE

    def _tell(self, moment: Moment, command: list[bytes]) -> None:
        for look in [*self.looks]:
            look(moment, command)


@asynccontextmanager
async def wires(upstream: Path, folder: Path, names: Iterable[str]) -> AsyncIterator[Mapping[str, Wire]]:
    """A wire for each name."""
    async with AsyncExitStack() as stack:
        made: dict[str, Wire] = {}
        for name in names:
            socket = folder / f"{name}.sock"
            wire = made[name] = Wire(upstream, socket)
            server = await asyncio.start_unix_server(wire.serve, str(socket), limit=LIMIT)
            stack.push_async_callback(wire.stop)
            stack.callback(server.close)
        yield made


def shut(all_wires: Iterable[Wire]) -> None:
    """Let nobody through, and end what there is."""
    for wire in all_wires:
        wire.is_shut = True
        wire.cut()


def reopen(all_wires: Iterable[Wire]) -> None:
    """Let everyone through again."""
    for wire in all_wires:
        wire.is_shut = False
