"""The machines: what really runs on each host. A hook at a URL, which outlives every agent.

It starts and stops work, is idempotent by placement as a hook must be, and records what must never happen: more work
on a host than the host holds, or one claim's work on two hosts.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from tests.support.processes.connections import Connections

LONGEST_S = 0.03
"""Maximum duration of a start or stop, unless the suite sets another one."""


@dataclass(frozen=True, slots=True)
class Work:
    """The running work of a claim on a host."""

    token: str
    slots: Mapping[str, int]
    placed: str = ""
    """The placement of the work; '' for the one with this token."""
    devices: Mapping[str, str] = field(default_factory=dict)
    """The devices that it was started on, by the names of their pools."""

    @property
    def name(self) -> str:
        """Return the name of its placement."""
        return self.placed or self.token


@dataclass(slots=True)
class Works:
    """All work of all hosts. `watch` gets `<verb> comes` before a request is executed and `<verb> done` after it."""

    capacities: Callable[[str], Mapping[str, int]]
    rng: Random
    watch: Callable[[str, str], None] = lambda _, __: None
    running: dict[tuple[str, str, str], Work] = field(default_factory=dict)
    """Work by host, claim id and the name of the placement."""
    broken: list[str] = field(default_factory=list)
    over_committed: int = 0
    """The number of times that work was started on a host that had no room for it."""
    orders: Counter[str] = field(default_factory=Counter)
    _pools: dict[str, str] = field(default_factory=dict)
    """The pool of each device on which work was started."""
    _turns: dict[tuple[str, str], asyncio.Lock] = field(default_factory=dict)

    def start(self, host: str, claim_id: str, work: Work) -> None:
        """Start the work unless it runs. Two placements of a claim on one host are two pieces of work."""
        self.running[host, claim_id, work.name] = work
        taken: Counter[str] = Counter()
        for (at, _, _), one in self.running.items():
            if at == host:
                taken.update(one.slots)
        for slot, capacity in self.capacities(host).items():
            if taken[slot] > capacity:
                ids = sorted(claim for at, claim, _ in self.running if at == host)
                self.over_committed += 1
                self.broken.append(
                    f"{host} runs {taken[slot]} {slot} of its {capacity} after starting {claim_id}: {ids}"
                )
        self._check_devices(host, claim_id, work)

    def _check_devices(self, host: str, claim_id: str, work: Work) -> None:
        """Check that work is started on a device under one name: by another it would be given out a second time."""
        for pool, device in work.devices.items():
            before = self._pools.setdefault(device, pool)
            if before != pool:
                self.over_committed += 1
                self.broken.append(f"{device} of {host} was {before}, and is {pool} for {claim_id}")

    def stop(self, host: str, claim_id: str, placed: str) -> None:
        """Stop the work if it runs."""
        self.running.pop((host, claim_id, placed), None)

    def twice(self) -> list[str]:
        """Return the claims whose work runs on more than one host."""
        count = Counter(claim_id for _, claim_id, _ in self.running)
        return sorted(claim_id for claim_id, times in count.items() if times > 1)

    async def carry_out(self, order: Mapping[str, object]) -> None:
        """Execute one request of an agent."""
        verb, host, claim_id = str(order["verb"]), str(order["host"]), str(order["claim_id"])
        self.orders[verb] += 1
        self.watch(f"{verb}-comes", host)
        # One after the other: a start that its agent abandoned is still in progress here when the stop arrives.
        async with self._turns.setdefault((host, claim_id), asyncio.Lock()):
            await self._carry_out(verb, host, claim_id, order)
        self.watch(f"{verb}-done", host)

    async def _carry_out(self, verb: str, host: str, claim_id: str, order: Mapping[str, object]) -> None:
        await asyncio.sleep(self.rng.uniform(0, LONGEST_S))
        slots = order["slots"]
        assert isinstance(slots, dict)
        if verb == "stop":
            self.stop(host, claim_id, str(order["placed"]))
        else:
            own = {slot: amount for slot, amount in slots.items() if not slot.startswith("pool:")}
            devices = order.get("devices", {})
            assert isinstance(devices, dict)
            self.start(host, claim_id, Work(str(order["token"]), own, str(order["placed"]), devices))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Execute one request over HTTP."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode().lower().split("\r\n")
            [length] = [int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")]
            await self.carry_out(json.loads(await reader.readexactly(length)))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        except (OSError, EOFError):
            pass  # an agent that was killed
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def machines(works: Works) -> AsyncIterator[str]:
    """Serve the hook; yield its URL."""
    orders = Connections()
    server = await asyncio.start_server(
        lambda reader, writer: orders.begin(works.serve(reader, writer), writer), "127.0.0.1", 0
    )
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/work"
    finally:
        await orders.end(server)
