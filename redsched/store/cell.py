"""CellStore: the commands and reads of one cell, grouped by subject. The scripts are called nowhere else."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from redis.exceptions import NoPermissionError

from redsched.model import Token
from redsched.model.validation import parse_signed
from redsched.store.client.script_client import ScriptClient
from redsched.store.codec.keys import CELLS
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Clock, ScriptResult
from redsched.store.commands.audit import AuditReads
from redsched.store.commands.base import CellClient
from redsched.store.commands.bindings import BindingCommands
from redsched.store.commands.claims import ClaimCommands
from redsched.store.commands.declared import DeclaredCommands
from redsched.store.commands.due import DueCommands
from redsched.store.commands.events import EventCommands
from redsched.store.commands.feed import FeedCommands, waits_of
from redsched.store.commands.fencing import FencingCommands
from redsched.store.commands.gangs import GangCommands
from redsched.store.commands.homes import HomeCommands
from redsched.store.commands.hosts import HostCommands
from redsched.store.commands.known_cells import KnownCells
from redsched.store.commands.quotas import QuotaCommands
from redsched.store.commands.repair import RepairCommands
from redsched.store.commands.reservations import ReservationCommands
from redsched.store.commands.schema import SchemaCommands
from redsched.store.commands.status import StatusCommands
from redsched.store.commands.texts import TextCommands
from redsched.store.commands.workload import WorkloadCommands

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class CellCall(Protocol[R_co]):
    """A call of an agent: see `redsched.store.agent_calls`."""

    async def run(self, cell: "CellStore", objects: Collection[str]) -> R_co:
        """Do in the cell what the call says."""


class CellStore:
    """One cell of one store: a component for each subject, and the calls about the cell as a whole.

    Every method is a coroutine. Each raises StoreUnavailable, OutcomeUnknown (the call was sent and no reply came) and,
    for malformed input, InvalidRequest.
    """

    def __init__(
        self, name: str, url: str, scripts: ScriptClient, reader: Any, outside: Any, cells: KnownCells | None = None
    ) -> None:
        self.name = name
        self._cell = cell = CellClient(name, url, scripts, reader, outside, cells)
        self.keys = cell.keys
        self.feed = FeedCommands(cell)
        self.homes = HomeCommands(cell)
        self.hosts = HostCommands(cell, self.homes)
        self.texts = TextCommands(cell)
        self.claims = ClaimCommands(cell, self.hosts, self.texts)
        self.gangs = GangCommands(cell, self.claims)
        self.due = DueCommands(cell)
        self.declared = DeclaredCommands(cell, self.hosts)
        self.quotas = QuotaCommands(cell)
        self.bindings = BindingCommands(cell)
        self.events = EventCommands(cell)
        self.workload = WorkloadCommands(cell)
        self.reservations = ReservationCommands(cell)
        self.fencing = FencingCommands(cell)
        self.schema = SchemaCommands(cell)
        self.status = StatusCommands(cell)
        self.repair = RepairCommands(cell, self.hosts)
        self.audit = AuditReads(cell, self.hosts)

    @property
    def is_read_only(self) -> bool:
        """Whether the connection was opened for reading only."""
        return self._cell.is_read_only

    async def call(self, call: CellCall[R], objects: Collection[str] = ()) -> R:
        """Run a call of an agent. `objects`: what counts its claim besides its host, which may save a second call."""
        return await call.run(self, objects)

    async def enter(self) -> set[str]:
        """Add the cell to the list of cells, if this connection may write, and return those that were in it.

        An agent's user may only read the list, and schedulers add their cells.
        """
        known = set[str]()
        if self.is_read_only:
            return known
        with self._cell.reading(), suppress(NoPermissionError):
            known.update(await self._cell.outside.smembers(CELLS))
            # A full server refuses SADD even if there is nothing to add.
            if self._cell.name not in known:
                await self._cell.outside.sadd(CELLS, self._cell.name)
        return known

    async def init(self) -> ScriptResult:
        """Declare the cell new, so that it starts settled. OK, or ALREADY_DONE if it exists. (init.lua)"""
        return await self._cell.answer("init")

    async def tick(self) -> Clock:
        """Run the fence, which records the store's time, and return the cell's clock. (tick.lua)

        A connection that only reads returns the clock without the fence. Raises StoreUnavailable then if the cell does
        not exist.
        """
        if self.is_read_only:
            return await self.feed.clock_without_fence()
        reply = await self._cell.run("tick", (self._cell.keys.deadlines,))
        waits = waits_of(*reply[5:]) if len(reply) > 5 else ()
        return Clock(reply[1], int(reply[3]), int(reply[2]), bool(reply[4]), *waits)

    async def clock_shift_ms(self) -> int:
        """Return by how much the store's clock has jumped since the cell began."""
        with self._cell.reading():
            return parse_signed(await self._cell.reader.hget(self._cell.keys.meta, "clock_shift_ms") or "")

    async def report_missing(self, epoch: str, scheduler: str, missing: int) -> ScriptResult:
        """Report how many of the hosts that a scheduler remembers from before a wipe have yet to attest. (missing.lua)

        The cell settles once none is missing for any scheduler. OK | ALREADY_DONE | WRONG_EPOCH, then whether the cell
        is settled.
        """
        return await self._cell.answer("missing", (self._cell.keys.missing,), (epoch, scheduler, missing))

    async def raise_epoch(self, above: str) -> ScriptResult:
        """Start a new epoch unless the current one is above `above`, an epoch that an agent has left. (raise_epoch.lua)

        OK | ALREADY_DONE.
        """
        Token.parse(f"{above}.0")
        return await self._cell.answer("raise_epoch", (), (above,))

    async def take_duty(self, duty: str, scheduler: str, lease_ms: int) -> bool:
        """Acquire or renew a duty for `lease_ms` (0: release); return False if another scheduler has it. (duty.lua)"""
        reply = await self._cell.scripts.run("duty", (self._cell.keys.duty(duty),), (scheduler, lease_ms))
        return bool(reply[0] == Outcome.OK)
