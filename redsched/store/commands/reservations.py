"""Reservations: amounts of hosts that are kept for requests that wait for room."""

from collections.abc import Mapping

from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient


class ReservationCommands:
    """Makes, renews and ends reservations of hosts."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def put(
        self,
        host: str,
        reservation: str,
        amounts: Mapping[str, int],
        lease_ms: int,
        wait_ms: int,
        most: int,
        request: str = "",
        project: str = "",
    ) -> Outcome:
        """Keep amounts of a host, by slot, for the request with this reservation, or renew that. (reserve.lua)

        `wait_ms`: how long the request will certainly wait, so that work that ends sooner may use the amounts; `most`:
        how many hosts of the cell may be reserved at a time; `request` and `project`: whose it is.
        OK | IN_USE (reserved for another request) | FULL (as many as may be are reserved) | UNKNOWN (no such host).
        """
        return await self._run(host, reservation, lease_ms, wait_ms, most, request, project, *flat(amounts))

    async def end(self, host: str, reservation: str) -> Outcome:
        """End a reservation. OK | ALREADY_DONE | UNKNOWN (no such host). (reserve.lua)"""
        return await self._run(host, reservation, 0, 0, 0, "", "")

    async def end_expired(self, now_ms: int) -> int:
        """End the reservations whose lease has expired by the store's time; return their number. (reserve.lua)"""
        with self._cell.reading():
            hosts = await self._cell.reader.zrange(self._cell.keys.reservations, "-inf", str(now_ms), byscore=True)
        outcomes = [await self.end(host, "") for host in hosts]
        return outcomes.count(Outcome.OK)

    async def hosts(self) -> dict[str, int]:
        """Return the hosts that are reserved, each with the end of its lease (Unix, ms)."""
        with self._cell.reading():
            found = await self._cell.reader.zrange(self._cell.keys.reservations, 0, -1, withscores=True)
        return {host: int(until_ms) for host, until_ms in found}

    async def _run(self, host: str, *arguments: str | int) -> Outcome:
        keys = (self._cell.keys.host(host), self._cell.keys.reservations)
        return Outcome((await self._cell.run("reserve", keys, (host, *arguments)))[0])
