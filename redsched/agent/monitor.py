"""The agent's view of one host: its collector's observations, and the remembered usage that belongs to no claim."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from redsched import aio, logs
from redsched.agent.collectors.base import Collector, LocalWork, Observation, Work
from redsched.agent.collectors.local_file import LocalFile
from redsched.agent.device_pools import gone_devices, named_devices, with_names
from redsched.agent.external import remember, with_external
from redsched.agent.journal.journal import Journal
from redsched.agent.journal.schema import HostPage
from redsched.model import Claim, ClaimStatus, HostReport

_log = logs.get_logger("redsched.agent")

FRESH_S = 1.0
"""The age up to which an observation is fresh enough, so that many claims that start together share it."""

CHEAP_S = 0.1
"""The duration up to which an observation is cheap enough to be repeated before each start."""


@dataclass(slots=True, eq=False)
class HostMonitor:
    """Observes one host, with one observation at a time."""

    collector: Collector
    journal: Journal
    local_file: LocalFile | None = None
    report: HostReport | None = None
    """The last observed report, with external usage."""
    local: tuple[LocalWork, ...] = ()
    """The local work in that observation."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Placements on this host that the store has and the journal does not: claim ids by `placed`.

    Their work may be running, started by an agent whose journal was lost. Measured as external usage, it would leave no
    room for its own claims.
    """
    _gone: Mapping[str, str] = field(default_factory=dict)
    """The devices that the last observation did not find, by the names of their pools."""
    _observed_at_s: float = 0.0
    _took_s: float = 0.0
    _observing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_unobserved(self) -> bool:
        """Whether the collector measures usage and has not observed yet, so that `unknown` must be set first."""
        return self.report is None and self.collector.period_s is not None

    @property
    def lacks_devices(self) -> bool:
        """Whether the store may know names of this host's devices that the journal does not have."""
        name = self.collector.name
        if self.report is not None or name in self.journal.devices:
            return False
        return self.is_unobserved or any(pool.device for pool in self.collector.look(()).report.pools.values())

    async def adopt_devices(self, devices: Mapping[str, str]) -> None:
        """Take the names that the store has for this host's devices: its claims hold slots of these names."""
        if devices:
            await self.journal.write_devices(self.collector.name, devices)

    def forget_unknown(self, claims: Iterable[Claim]) -> None:
        """Keep in `unknown` only the placements that these claims still have on the host."""
        self._keep_unknown({one.placed for claim in claims for one in claim.placements})

    def _keep_unknown(self, placed: Collection[str]) -> None:
        self.unknown = {name: claim_id for name, claim_id in self.unknown.items() if name in placed}

    def period_s(self, local_file_s: float) -> float | None:
        """Return the seconds between two observations; None if nothing can change."""
        if self.collector.period_s is None and self.local_file is not None:
            return local_file_s
        return self.collector.period_s

    async def observe(self, without: str = "") -> HostReport:
        """Observe the host now, without the work of the placement `without`, which is gone. Raises OSError."""
        async with self._observing:
            page = self.journal.pages[self.collector.name]
            self._observed_at_s = aio.now_s()
            observation, written = await self._look(page, without)
            if await self._name_devices(observation):
                # It was not known yet which claims hold these devices, and so whose processes may use them.
                observation, written = await self._look(page, without)
                await self._name_devices(observation)
            self._took_s = aio.now_s() - self._observed_at_s
            observation = self._with_names(observation)
            known = remember(observation, page.external)
            if known != page.external:
                # Not awaited: losing this write in a crash costs one outdated measurement.
                self.journal.write_external(self.collector.name, known)
            self.local = (*observation.local, *written)
            self.report = with_external(observation.report, known)
            return self.report

    async def observe_again(self, without: str = "") -> HostReport:
        """Return a new observation if that is cheap, else the last one. Raises OSError if there is none yet.

        `without` is a placement whose work has not been started, even if the journal already has it as STARTING.
        """
        is_old = aio.now_s() - self._observed_at_s > FRESH_S
        if self.report is None or (is_old and self._took_s <= CHEAP_S):
            return await self.observe(without)
        return self.report

    async def _look(self, page: HostPage, without: str) -> tuple[Observation, tuple[LocalWork, ...]]:
        works = self._running_work(page, without)
        if self.collector.period_s is None:
            return self._observe_now(works)
        return await asyncio.to_thread(self._observe_now, works)

    async def _name_devices(self, observation: Observation) -> bool:
        """Give names to the devices that have none yet, durably before they are reported; return whether there are."""
        host, pools = self.collector.name, observation.report.pools
        known = self.journal.devices.get(host, {})
        named = named_devices(known, pools)
        if named == known:
            return False
        await self.journal.write_devices(host, named)
        for name in named.keys() - known.keys():
            if name not in pools or pools[name].device != named[name]:
                _log.warning("a device has the number of another", host=host, device=named[name], pool=name)
        return True

    def _with_names(self, observation: Observation) -> Observation:
        host = self.collector.name
        named = self.journal.devices.get(host, {})
        gone = gone_devices(named, observation.report.pools)
        for name in gone.keys() - self._gone.keys():
            _log.warning("a device is gone, its pool has nothing to give", host=host, pool=name, device=named[name])
        for name in self._gone.keys() - gone.keys():
            _log.info("a device is back", host=host, pool=name, device=self._gone[name])
        self._gone = gone
        return with_names(observation, named) if named else observation

    def _running_work(self, page: HostPage, without: str) -> list[Work]:
        """Return the placements whose work may be running. Others would make the measurement incomplete."""
        self._keep_unknown(self.unknown.keys() - page.held.keys())
        begun = [one for one in page.held.values() if one.state is not ClaimStatus.CLAIMED]
        host, devices = self.collector.name, self.journal.devices_of
        works = [Work(one.id, one.named, one.placed, frozenset(devices(host, one).values())) for one in begun]
        works += [Work(claim_id, placed=placed) for placed, claim_id in self.unknown.items()]
        return [work for work in works if work.placed != without]

    def _observe_now(self, works: Sequence[Work]) -> tuple[Observation, tuple[LocalWork, ...]]:
        written = self.local_file.of(self.collector.name) if self.local_file is not None else ()
        return self.collector.look(works), written
