"""Nova's filter scheduler: read the state of all hosts for each request, filter and weigh, claim on the host.

The scheduler returns the best host and alternates (Nova since Queens). The host checks the claim and may refuse it;
then the next alternate is tried, up to Nova's `max_attempts` of 3 hosts. Within a process, a decision counts the
earlier ones that no host has published yet.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence

from benchmarks.models.model import Model, Outcome, Scheduler
from benchmarks.models.published import publish_fleet, publishing_state, redis_client, refresh
from benchmarks.models.rpc import Caller
from benchmarks.models.views import HostView, make_views, ranked, rng_of
from benchmarks.models.work import Ask, Setup

MAX_ATTEMPTS = 3


class HostChooser:
    """Filters and weighs views, and claims on the hosts: what the filter and the caching scheduler have in common."""

    def __init__(self, setup: Setup, number: int, hosts: Caller) -> None:
        self.views = make_views(setup.hosts)
        self._pick_from, self._rng, self._hosts = setup.pick_from, rng_of(setup, number), hosts

    async def place(self, ask: Ask) -> Outcome:
        """Claim on the best host, then on the alternates."""
        chosen = ranked(self.views.values(), ask.amounts, self._rng, self._pick_from, MAX_ATTEMPTS)
        if not chosen:
            return Outcome("")
        chosen[0].consume(ask.amounts)
        return await self._claim(ask, chosen)

    async def _claim(self, ask: Ask, chosen: Sequence[HostView]) -> Outcome:
        for refused, view in enumerate(chosen):
            reply = await self._hosts.call("claim", host=view.name, claim_id=ask.claim_id, amounts=ask.amounts)
            if reply["accepted"]:
                return Outcome(view.name, refused, refused)
        return Outcome("", len(chosen) - 1, len(chosen))


class FilterScheduler:
    """Reads the whole fleet before each decision."""

    def __init__(self, chooser: HostChooser, client: object, database_s: float) -> None:
        self._chooser, self._client, self._database_s = chooser, client, database_s

    async def place(self, ask: Ask) -> Outcome:
        """Read, then decide and claim."""
        await refresh(self._client, self._chooser.views, self._database_s)
        return await self._chooser.place(ask)


@contextlib.asynccontextmanager
async def connect(setup: Setup, number: int, hosts: Caller) -> AsyncIterator[Scheduler]:
    """Open a scheduler."""
    async with redis_client(setup) as client:
        yield FilterScheduler(HostChooser(setup, number, hosts), client, setup.database_s)


MODEL = Model(
    "filter",
    "read all hosts for each request, claim on the host (Nova's filter scheduler)",
    connect,
    hosts_decide=True,
    prepare=publish_fleet,
    publishing=publishing_state,
)
