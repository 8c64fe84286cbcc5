"""The job of schedulers that race under constraints: a rush, a read of the full fleet, turns, and a release of all.

gate, every process sends all of its requests, two at once          the rush: nothing is released
gate, one process reads the store, gate                             `Outcome.still`
every process releases (or confirms) its oldest claim, and requests another one, this many turns
every process releases all that it holds
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, cycle

from redsched.errors import NoValidHost
from redsched.model import HostReport, Request, ServerGroup, SharedPool
from redsched.model.records.selections import Selection
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from tests.support.models.instant_rules import books
from tests.support.models.instants import Instant, Rule, connected, observed, read_instant
from tests.support.processes.racers import Racer, Racers

WORKERS = 2
IN_FLIGHT = 2
"""Concurrent requests of one process. A process sends them to the store as one batch, with no instant in between."""
LEAST_INSTANTS = 6
"""The minimum number of distinct instants for a race to prove anything. Usually there are ten times as many."""

Declared = ServerGroup | SharedPool


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of every process, by kind, and its actions after the rush."""

    url: str
    kinds: Mapping[str, Request]
    each: int
    """The number of requests of each kind per process in the rush."""
    turns: int = 0
    """How often each of its workers then releases a claim and requests another one."""
    confirms: bool = False
    """Whether workers confirm claims instead, as a host would."""


@dataclass(slots=True)
class Outcome:
    """The results of the requests of one process, or of all."""

    placed: dict[str, list[str]] = field(default_factory=dict)
    """Claim ids of each request that got its places in the rush, by `<kind>.<process>.<number>`."""
    refused: list[str] = field(default_factory=list)
    """The requests that the rush refused, likewise."""
    efforts: list[Effort] = field(default_factory=list)
    """The effort (calls, retries, duration) of each request of the rush."""
    later: dict[str, int] = field(default_factory=lambda: {"placed": 0, "refused": 0})
    """The number of requests of the turns by their result."""
    errors: list[str] = field(default_factory=list)
    still: Instant | None = None
    """The cell between the rush and the turns, when no request was in progress."""

    def add(self, other: "Outcome") -> None:
        self.placed |= other.placed
        self.refused += other.refused
        self.efforts += other.efforts
        self.later = {word: number + other.later[word] for word, number in self.later.items()}
        self.errors += other.errors
        self.still = self.still or other.still

    def refused_kinds(self) -> set[str]:
        """Return the kinds of which the rush refused some requests."""
        return {name.partition(".")[0] for name in self.refused}


async def compete(racer: Racer, plan: Plan) -> Outcome:
    """Play a plan in one process."""
    one = _Competitor(racer, plan)
    await racer.gate()
    await asyncio.gather(*(one.rush(kind) for kind in plan.kinds for _ in range(plan.each)))
    one.outcome.efforts = list(racer.efforts)
    await racer.gate()
    if racer.number == 0:
        with connected(plan.url) as client:
            one.outcome.still = read_instant(client)
    await racer.gate()
    await asyncio.gather(*(one.go_on() for _ in range(WORKERS)))
    await asyncio.gather(*(one.give_back(taken) for taken in (*one.held, *one.confirmed)))
    return one.outcome


async def raced(
    race: Racers,
    plan: Plan,
    hosts: Iterable[HostReport],
    rules: Sequence[Rule] = (),
    declared: Sequence[Declared] = (),
    **settings: int,
) -> tuple[Outcome, Instant]:
    """Play a plan on a new fleet while an observer checks the rules; return its result, and the cell after the rush.

    Afterwards the store has exactly the claims that were answered, and nothing is left of released ones.
    """
    # It stays open and ticks: processes may take long to start, and an unread clock starts an epoch.
    async with Scheduler.connect(plan.url) as scheduler:
        await _prepare(scheduler, hosts, declared)
        with observed(plan.url, (books, *rules)) as watched:
            outcomes: list[Outcome] = await race.play(compete, plan.url, plan, **settings)
    total = Outcome()
    for one in outcomes:
        total.add(one)
    assert not total.errors, total.errors[:3]
    assert not watched.broken, watched.broken[:3]
    assert watched.instants >= LEAST_INSTANTS, f"only {watched.instants} instants were seen"
    assert total.still is not None
    answered = set(chain.from_iterable(total.placed.values()))
    assert total.still.claims.keys() == answered, total.still.claims.keys() ^ answered
    assert len(total.placed) + len(total.refused) == len(race) * plan.each * len(plan.kinds)
    _assert_empty(plan.url)
    return total, total.still


async def _prepare(scheduler: Scheduler, hosts: Iterable[HostReport], declared: Iterable[Declared]) -> None:
    await scheduler.init()
    for one in declared:
        if isinstance(one, ServerGroup):
            await scheduler.server_groups.put(one)
        else:
            await scheduler.shared_pools.put(one, "c1")
    for host in hosts:
        await scheduler.hosts.report(host)


def _assert_empty(url: str) -> None:
    """Check that nothing is claimed, on any host or anywhere else."""
    with connected(url) as client:
        now = read_instant(client)
    problems = list(books(now))
    assert not now.claims, now.claims
    assert not problems, problems


class _Competitor:
    """One process, the claims that it holds, oldest first, and the results of its requests."""

    def __init__(self, racer: Racer, plan: Plan) -> None:
        self.outcome = Outcome()
        self.held: deque[list[Selection]] = deque()
        self.confirmed: list[list[Selection]] = []
        self._racer = racer
        self._plan = plan
        self._numbers = count()
        self._kinds = cycle(plan.kinds)
        self._in_flight = asyncio.Semaphore(IN_FLIGHT)

    async def rush(self, kind: str) -> None:
        name = self._name(kind)
        async with self._in_flight:
            taken = await self._ask(kind, name)
        if taken is None:
            self.outcome.refused.append(name)
        elif taken:
            self.outcome.placed[name] = [str(one.claim_id) for one in taken]

    async def go_on(self) -> None:
        for _ in range(self._plan.turns):
            if self.held:
                await self._part_with(self.held.popleft())
            kind = next(self._kinds)
            taken = await self._ask(kind, self._name(kind))
            self.outcome.later["refused" if taken is None else "placed"] += 1

    async def give_back(self, taken: list[Selection]) -> None:
        """Release every claim of a request by force: its hosts would never report that confirmed ones have stopped."""
        for one in taken:
            await self._racer.scheduler.claims.release(str(one.claim_id), force=True)

    async def _part_with(self, taken: list[Selection]) -> None:
        if not self._plan.confirms:
            return await self.give_back(taken)
        for one in taken:
            await self._racer.scheduler.claims.confirm(str(one.claim_id), str(one.token))
        self.confirmed.append(taken)
        return None

    async def _ask(self, kind: str, name: str) -> list[Selection] | None:
        """Select; return None for a refusal, and nothing for an error, which is recorded."""
        request = replace(self._plan.kinds[kind], consumer=name)
        if request.members:
            request = replace(request, claim_ids=tuple(f"{name}.{number}" for number in range(request.places)))
        try:
            taken = list((await self._racer.scheduler.select(request)).selections)
        except NoValidHost:
            return None
        except Exception as error:
            self.outcome.errors.append(repr(error))
            return []
        self.held.append(taken)
        return taken

    def _name(self, kind: str) -> str:
        return f"{kind}.p{self._racer.number}.{next(self._numbers)}"
