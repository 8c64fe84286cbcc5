"""After any sequence of calls, schedulers see all declared objects as operators last declared them.

One reader applies the replies to its own claims and reads the feed at times, another one reads it only at the end.
Both must equal a new snapshot of the store.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import redis
from hypothesis import given, settings, strategies as st

from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.cache.updater import ReplicaUpdater
from redsched.model import Aggregate, Candidate, GroupPolicy, HostReport, Inventory, Pool, ServerGroup, SharedPool
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, Member, ReleaseMode
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import HOUR_S, open_host
from tests.support.profiles import LONG_EXAMPLES, PHASES, SHORT_EXAMPLES, is_long

SETTINGS = Settings(poll_s=60, tick_s=3600)
HOSTS = ("h1", "h2", "h3")
NAMES = ("x", "y")
EXAMPLES = LONG_EXAMPLES if is_long() else 2 * SHORT_EXAMPLES
DONE = (Outcome.OK, Outcome.ALREADY_DONE)

names, hosts, forced = st.sampled_from(NAMES), st.sampled_from(HOSTS), st.booleans()
metadata = st.dictionaries(st.sampled_from(("disk", "net")), st.sampled_from(("1", "2")))
topologies = st.sampled_from(("host", "zone", "label:rack"))
pools = st.fixed_dictionaries(
    {}, optional={name: st.builds(Pool, st.just({"VGPU": Inventory(4)}), st.just("")) for name in ("gpu0", "numa0")}
)
reports = st.builds(
    HostReport,
    hosts,
    st.just({"VCPU": Inventory(9)}),
    zone=st.sampled_from(("az1", "az2")),
    labels=st.dictionaries(st.just("rack"), st.sampled_from(("r1", "r2"))),
    pools=pools,
    lease_s=st.just(HOUR_S),
)
aggregates = st.builds(Aggregate, names, metadata, st.frozensets(st.sampled_from((*HOSTS, "nowhere"))))
groups = st.builds(
    ServerGroup, names, st.sampled_from(GroupPolicy), topologies, count_by=st.lists(topologies, max_size=1).map(tuple)
)
shared_pools = st.builds(
    SharedPool,
    names,
    st.dictionaries(st.sampled_from(("DISK_GB", "CUSTOM_SEAT")), st.builds(Inventory, st.integers(0, 5)), min_size=1),
    st.frozensets(st.just("CUSTOM_T")),
    st.frozensets(names),
)
steps = st.one_of(
    reports,
    aggregates,
    groups,
    shared_pools,
    st.tuples(st.sampled_from(("delete_aggregate", "delete_group", "delete_pool")), names, forced),
    st.tuples(st.just("claim"), hosts, st.sampled_from(("", *NAMES)), st.sampled_from(("", *NAMES)), st.integers(1, 2)),
    st.tuples(st.just("forget"), hosts, forced),
    # A new epoch is rare, because it makes every reader take a new snapshot.
    st.sampled_from((*("release", "confirm", "look") * 4, "new epoch")),
)
BEGINNING = (
    HostReport("h1", {"VCPU": Inventory(9)}, labels={"rack": "r1"}, lease_s=HOUR_S),
    HostReport("h2", {"VCPU": Inventory(9)}, zone="az1", lease_s=HOUR_S),
    ServerGroup("x", GroupPolicy.SOFT_AFFINITY, count_by=("label:rack",)),
    SharedPool("x", {"DISK_GB": Inventory(5)}),
    ("claim", "h1", "x", "x", 2),
)


@dataclass
class Life:
    """A cell, the reader that claims, and the expected aggregates and claims."""

    cell: CellStore
    reader: ReplicaUpdater
    aggregates: dict[str, tuple[Mapping[str, str], frozenset[str]]] = field(default_factory=dict)
    claims: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    """By id: host, token, group, shared pool."""
    count: int = 0

    async def play(self, step: object) -> None:
        """Execute one step."""
        match step:
            case HostReport():
                await open_host(self.cell, step.name, step)
            case Aggregate():
                unknown = (await self.cell.declared.put_aggregate(step)).facts
                self.aggregates[step.name] = (step.metadata, step.hosts.difference(unknown))
            case ServerGroup():
                await self.cell.declared.put_group(step)
            case SharedPool():
                await self.cell.declared.put_pool(step)
            case ("delete_aggregate", str(name), bool(force)):
                if (await self.cell.declared.delete_aggregate(name, force)).outcome is Outcome.OK:
                    del self.aggregates[name]
            case ("delete_group", str(name), bool(force)):
                await self.cell.declared.delete_group(name, force)
            case ("delete_pool", str(name), bool(force)):
                await self.cell.declared.delete_pool(name, force)
            case ("forget", str(host), bool(force)):
                await self.forget(host, force)
            case ("claim", str(host), str(group), str(pool), int(places)):
                await self.claim(host, group, pool, places)
            case _:
                await self.say(step)

    async def say(self, word: object) -> None:
        """Let the reader catch up, begin an epoch, or confirm or release the oldest claim."""
        if word == "look":
            await self.reader.catch_up()
        elif word == "new epoch":
            await self.cell.raise_epoch(self.reader.epoch)
            for host in await self.cell.hosts.names():
                await self.cell.hosts.attest(host, "")
        elif self.claims:
            claim_id, (host, token, _, _) = next(iter(self.claims.items()))
            if word == "confirm":
                await self.cell.claims.confirm(host, claim_id, token)
            elif (await self.cell.claims.release(host, claim_id, how=ReleaseMode.FORCE)).outcome is Outcome.OK:
                del self.claims[claim_id]

    async def claim(self, host: str, group: str, pool: str, places: int) -> None:
        """Claim one or two members on a host: its version rises per member, that of a group or pool per call."""
        self.count += 1
        clock = await self.cell.tick()
        amounts = {"VCPU": 1} | ({f"pool:{pool}/DISK_GB": 1} if pool else {})
        ids = [f"c{self.count}-{number}" for number in range(places)]
        members = tuple(Member(one, (Candidate(host, amounts),), group) for one in ids)
        answer = await self.cell.claims.place(
            ClaimCall(members, clock.epoch, clock.now_ms, clock.seq, "d", True, HOUR_S * 1000)
        )
        self.reader.apply_reply(answer)
        for one, placed in zip(ids, answer.placed, strict=bool(answer.placed)):
            self.claims[one] = (host, placed.token, group, pool)

    async def forget(self, host: str, force: bool) -> None:
        """Remove a host, and expect it to be gone from its aggregates."""
        if (await self.cell.hosts.forget(host, force)).outcome is Outcome.OK:
            self.claims = {one: claim for one, claim in self.claims.items() if claim[0] != host}
            for name, (said, members) in self.aggregates.items():
                self.aggregates[name] = (said, members - {host})

    def check(self, columns: Columns) -> None:
        """Check that the columns contain exactly the expected objects and counts."""
        declared = columns.declared
        assert {name: one.metadata for name, one in declared.aggregates.items()} == {
            name: said for name, (said, _) in self.aggregates.items()
        }
        assert {name: frozenset(columns.names_in(columns.aggregates[name])) for name in columns.aggregates} == {
            name: self.aggregates.get(name, ({}, frozenset()))[1] for name in columns.aggregates
        }
        members = Counter(group for _, _, group, _ in self.claims.values())
        assert {name: one.members for name, one in declared.groups.items()} == {
            name: members[name] for name in declared.groups
        }
        taken = Counter(pool for _, _, _, pool in self.claims.values())
        assert {name: sum(slot.claimed for slot in one.slots.values()) for name, one in declared.pools.items()} == {
            name: taken[name] for name in declared.pools
        }


async def live(server: PrivateServer, played: list[object]) -> None:
    with redis.Redis(unix_socket_path=str(server.socket), protocol=2) as client:
        client.flushall()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Store.connect(server.url, SETTINGS))
        cell = store.cell("c1")
        await cell.init()
        readers = [ReplicaUpdater(cell, SETTINGS) for _ in range(2)]
        for one in readers:
            stack.push_async_callback(one.stop)
            await one.start()
        life = Life(cell, readers[0])
        for step in (*BEGINNING, *played):
            await life.play(step)
        fresh = (await take_snapshot(cell)).columns
        life.check(fresh)
        for one in readers:
            await one.catch_up()
            assert difference(one.columns, fresh) == []


@settings(phases=PHASES, max_examples=EXAMPLES)
@given(st.lists(steps, min_size=4, max_size=40))
def test_every_reader_sees_what_was_declared_last(server: PrivateServer, played: list[object]) -> None:
    asyncio.run(live(server, played))
