"""Replay a workload: request what an export or a trace has, in its order, on its hosts in another store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise

from redsched import progress
from redsched.decide.plugins.registry import PluginRegistry
from redsched.decide.scoring.registry import check_policy, check_weighers
from redsched.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, TooHard
from redsched.offline.arrivals import Arrival, weighed_by
from redsched.offline.fleet_meter import FleetMeter
from redsched.offline.loading import load, private_settings
from redsched.operate.backup.archive import Archive
from redsched.scheduler.scheduler import Scheduler, plugins_of
from redsched.settings import Settings
from redsched.store.store import Store

MAX_PLACES = 100_000
REFUSALS = (Conflict, NotFound, QuotaExceeded, TooHard)
"""What a refused place raises. NotFound: it names a declared object that is not in the file."""
LEARNING = 50
"""After how many arrivals the weighers learn what was requested."""
SAMPLES = 200
"""How many samples a replay has, if it has as many arrivals."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The state at a time: the places requested and refused until then, and by class what a `Reading` has."""

    at_s: float
    requested: int
    refused: int
    fill: Mapping[str, float]
    fragmentation: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The numbers of places claimed and refused, and of hosts used, and samples in the order of their times.

    `guessed` counts the places whose request is unknown, so that it was derived from the amounts that they hold.
    """

    policy: str
    placed: int
    refused: int
    hosts: int
    guessed: int
    samples: tuple[Sample, ...] = ()

    @property
    def fill(self) -> Mapping[str, float]:
        """The mean fill over time by class, 0 to 1."""
        return self._means([one.fill for one in self.samples])

    @property
    def peak(self) -> Mapping[str, float]:
        """The greatest fill of each class, 0 to 1."""
        return {name: max(one.fill[name] for one in self.samples) for name in self.fill}

    @property
    def fragmentation(self) -> Mapping[str, float]:
        """The mean fragmentation over time by class, 0 to 1."""
        return self._means([one.fragmentation for one in self.samples])

    def _means(self, values: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
        """Return the means of what lasts from each sample to the next; if they are all of one time, of the samples."""
        lasting = [later.at_s - one.at_s for one, later in pairwise(self.samples)]
        weights = [*lasting, 0.0] if any(lasting) else [1.0] * len(values)
        of_all = list(zip(values, weights, strict=True))
        return {name: sum(one[name] * weight for one, weight in of_all) / sum(weights) for name in values[0]}


def check_policies(arrivals: Iterable[Arrival], policy: str, registry: PluginRegistry) -> None:
    """Raise InvalidRequest if `policy` is unknown; without it, if an arrival names an unknown policy or weigher."""
    check_policy("policy", policy or registry.policy, registry.policies)
    for arrival in () if policy else arrivals:
        for one in (arrival.request, *(member.request for member in arrival.request.members)):
            try:
                check_policy("policy", one.policy or registry.policy, registry.policies)
                check_weighers("weights", one.weights, registry.weighers)
            except InvalidRequest as error:
                raise _cannot_be_placed(arrival, error) from error


def _cannot_be_placed(arrival: Arrival, error: InvalidRequest) -> InvalidRequest:
    return InvalidRequest(f"the request {arrival.where} cannot be placed: {error.detail}")


async def replay(
    url: str, fleet: Archive, arrivals: Sequence[Arrival], settings: Settings, policy: str = ""
) -> Replayed:
    """Place the arrivals on the hosts of an archive, in the empty store at `url`.

    `policy` replaces the policies of the requests. Among equal hosts the first is always taken, so that replays are
    repeatable. It ends with the last arrival. Raises StoreUnavailable, InvalidRequest (such as an unknown policy).
    """
    settings = private_settings(settings, url, fleet.head.cell).model_copy(update={"pick_from": 1})
    plugins = plugins_of(settings)
    check_policies(arrivals, policy, plugins())
    async with Store.connect(url, settings) as store:
        await load(store.cell(fleet.head.cell), replace(fleet, claims={}, alternates={}, requests={}))
    meter = FleetMeter((one.request for one in arrivals), plugins().filters)
    async with Store.connect(url, settings) as store:
        scheduler = Scheduler(store, settings, plugins)
        async with scheduler.running():
            playing = _Playing(scheduler, meter, policy)
            workload = scheduler.tasks[fleet.head.cell].workload
            await workload.stop()  # its exchanges are at times of the clock, which differ between replays
            for number, arrival in enumerate(arrivals, 1):
                progress.report("requests", number - 1, len(arrivals))
                await playing.play(arrival)
                if number % LEARNING == 0:
                    await workload.exchange()
                if number * SAMPLES // len(arrivals) > (number - 1) * SAMPLES // len(arrivals):
                    await playing.sample(arrival.at_s)
    return Replayed(
        policy, playing.placed, playing.refused, len(playing.hosts), playing.guessed, tuple(playing.samples)
    )


@dataclass
class _Playing:
    """The state of a replay: what was counted, and the work that ends, by time."""

    scheduler: Scheduler
    meter: FleetMeter
    policy: str
    placed: int = 0
    refused: int = 0
    guessed: int = 0
    hosts: set[str] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)
    _ends: list[tuple[float, str]] = field(default_factory=list)

    async def play(self, arrival: Arrival) -> None:
        """End what ends before an arrival, and place it."""
        await self._end_until(arrival.at_s)
        request = weighed_by(arrival.request, self.policy)
        self.guessed += request.places * arrival.is_guess
        try:
            found = (await self.scheduler.select(request)).selections
        except REFUSALS:
            found = ()
        except InvalidRequest as error:
            raise _cannot_be_placed(arrival, error) from error
        self.placed += len(found)
        self.refused += request.places - len(found)
        self.hosts.update(one.host for one in found)
        if arrival.for_s is not None:
            for one in found:
                heappush(self._ends, (arrival.at_s + arrival.for_s, str(one.claim_id)))

    async def sample(self, at_s: float) -> None:
        """Note the present state."""
        (cell,) = self.scheduler.cells
        reading = await cell.read_at_head(lambda: self.meter.read(cell.updater.columns))
        places = self.placed + self.refused
        self.samples.append(Sample(at_s, places, self.refused, reading.fill, reading.fragmentation))

    async def _end_until(self, at_s: float) -> None:
        has_ended = False
        while self._ends and self._ends[0][0] <= at_s:
            await self.scheduler.claims.release(heappop(self._ends)[1])
            has_ended = True
        if has_ended:
            # A decision may be on columns of a moment ago; that of a replay has to see the room that came free.
            await self.scheduler.cells.catch_up()
