"""Invariants 1 to 4 and 10 of the design for groups, shared pools, rules and limits, after any sequence of calls.

The reply to each claim call is compared with a result computed from all existing claims. After each step all counts
are compared with the claims, and a replica that follows the feed with a new snapshot.
"""

from dataclasses import replace

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.cache.updater import ReplicaUpdater
from redsched.model import (
    Candidate,
    Claim,
    ClaimRule,
    ClaimStatus,
    EndReason,
    GroupPolicy,
    HostLimit,
    HostReport,
    Inventory,
    RuleKind,
    ServerGroup,
    SharedPool,
)
from redsched.operate.audit.counts import Counted, count_problems, read_counts
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, EndedPlacement, JournaledClaim, Member, ReleaseMode, ScriptResult
from redsched.store.embedded.server import PrivateServer
from tests.support.builders.cells import HOUR_S, make_due
from tests.support.builders.placements import Snapshot, held_claim, restore, snapshot
from tests.support.builders.played import SETTINGS, PlayedCell
from tests.support.models.plain_affinity import PlainHost, World
from tests.support.models.sums import read_hashes
from tests.support.profiles import LONG_EXAMPLES, PHASES, SHORT_EXAMPLES, is_long

SEAT = "pool:lic/CUSTOM_SEAT"
HOSTS = {
    "h1": PlainHost({"VCPU": 12}, {"zone": "az1", "label:rack": "r1"}),
    "h2": PlainHost({"VCPU": 12}, {"zone": "az1", "label:rack": "r2"}),
    "h3": PlainHost({"VCPU": 12}, {"zone": "az2"}),
}
GROUPS = ("web", "db")
BY = ("host", "zone", "label:rack")

amounts = st.fixed_dictionaries({"VCPU": st.integers(1, 2)}, optional={SEAT: st.integers(1, 3)})
candidates = st.lists(st.builds(Candidate, st.sampled_from(sorted(HOSTS)), amounts), min_size=1, max_size=4)
members = st.lists(st.tuples(candidates, st.sampled_from(("", "", *GROUPS))), min_size=1, max_size=4)
DOMAINS = {"host": ("h1", "h2", "h3"), "zone": ("az1", "az2"), "label:rack": ("r1", "r2")}
rule_for = st.sampled_from(BY).flatmap(
    lambda by: st.builds(
        ClaimRule,
        st.sampled_from(RuleKind),
        st.just(by),
        st.sampled_from(((0, 1, 2, 3), (0, 1, 2, 3), (0, 2))),
        st.sampled_from(("", *GROUPS)),
        st.integers(1, 2),
        st.sampled_from(((), DOMAINS[by])),
    )
)
rules = st.lists(rule_for, max_size=2)
limit = st.builds(HostLimit, st.none() | st.integers(1, 4), st.none() | st.integers(1, 2))
limits = st.dictionaries(st.sampled_from(sorted(HOSTS)), limit, max_size=2)
troubles = st.sampled_from(("group", "group", "no group", "pool", "pool", "no pool", "host", "zone", "zone", "copy"))
domains_of_a_host = st.fixed_dictionaries(
    {"zone": st.sampled_from(DOMAINS["zone"])}, optional={"label:rack": st.sampled_from(DOMAINS["label:rack"])}
)
joined = st.sampled_from(("", *GROUPS))
policies = st.sampled_from(GroupPolicy)
WORDS = ("accept", "accept", "confirm", "release", "force", "fail", "fail by host", "gone")
words = st.sampled_from(WORDS)


def report_of(name: str, host: PlainHost) -> HostReport:
    labels = {"rack": host.domains["label:rack"]} if "label:rack" in host.domains else {}
    inventories = {slot: Inventory(total) for slot, total in host.has.items()}
    return HostReport(name, inventories, zone=host.domains["zone"], labels=labels, lease_s=HOUR_S)


class CompanyMachine(PlayedCell, RuleBasedStateMachine):
    """One store, the journals of its hosts, and a replica that follows its feed."""

    def __init__(self, server: PrivateServer) -> None:
        super().__init__(server)
        self.journals: dict[str, dict[str, JournaledClaim]] = {name: {} for name in HOSTS}
        self.ended: dict[str, dict[str, str]] = {name: {} for name in HOSTS}
        self.hosts = dict(HOSTS)
        self.kept: Snapshot = {}
        self.updater = ReplicaUpdater(self.cell, SETTINGS)
        self.stack.push_async_callback(self.updater.stop)
        self.play(self.updater.start())

    @initialize(web=policies, db=policies, by=st.sampled_from(BY), seats=st.integers(4, 12))
    def begin(self, web: GroupPolicy, db: GroupPolicy, by: str, seats: int) -> None:
        """Create two groups, a shared pool and three hosts."""
        self.play(self.cell.declared.put_group(ServerGroup("web", web, count_by=("label:rack",))))
        self.play(self.cell.declared.put_group(ServerGroup("db", db, by)))
        self.play(self.cell.declared.put_pool(SharedPool("lic", {"CUSTOM_SEAT": Inventory(seats)})))
        for name in HOSTS:
            self.play(self.hear(name))
        self.play(self.remember())

    async def hear(self, name: str) -> None:
        """Let a host report, and attest with its journal."""
        await self.cell.hosts.report(report_of(name, self.hosts[name]))
        held = tuple(self.journals[name].values())
        ended = tuple(EndedPlacement(one, token) for one, token in self.ended[name].items())
        answer = await self.cell.hosts.attest(name, "", None, held, ended, HOUR_S)
        assert answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE)
        for claim_id in answer.drop:
            del self.journals[name][claim_id]

    # Reading the store

    async def claims(self) -> dict[str, Claim]:
        found = await self.cell.claims.read(await self.cell.audit.claim_ids())
        return {id_: found[id_] for id_ in sorted(found) if found[id_].state is not ClaimStatus.ENDED}

    async def world(self) -> World:
        declared_groups, declared_pools = [
            await self.cell.declared.read(kind, await self.cell.declared.names(kind))
            for kind in (Kind.SERVER_GROUP, Kind.POOL)
        ]
        groups = {
            name: ServerGroup(
                name,
                GroupPolicy(fields["policy"]),
                fields["by"],
                int(fields["max_per_host"]),
                tuple(by for field, by in fields.items() if field.startswith("count_by.")),
            )
            for name, fields in declared_groups.items()
        }
        pools = {f"pool:{name}/CUSTOM_SEAT": int(one["capacity.CUSTOM_SEAT"]) for name, one in declared_pools.items()}
        known = await self.cell.hosts.names()
        return World({name: self.hosts[name] for name in known}, groups, pools)

    # Claims

    @rule(wanted=members, wished=rules, limited=limits)
    def claim(
        self, wanted: list[tuple[list[Candidate], str]], wished: list[ClaimRule], limited: dict[str, HostLimit]
    ) -> None:
        self.play(self.send(wanted, wished, limited))

    @rule(places=st.lists(candidates, min_size=2, max_size=4), one=rule_for, group=joined)
    def claim_under_a_rule(self, places: list[list[Candidate]], one: ClaimRule, group: str) -> None:
        """Claim members that one rule covers; they join the group of the rule, if it has one."""
        self.play(self.send([(wanted, group) for wanted in places], [replace(one, group=group)], {}))

    @rule(host=st.sampled_from(sorted(HOSTS)), group=joined, said=st.lists(words, max_size=3))
    def live(self, host: str, group: str, said: list[str]) -> None:
        """Make a small claim and execute a few verbs on it: independent rules rarely combine to that."""
        self.play(self.send([([Candidate(host, {"VCPU": 1, SEAT: 1})], group)], [], {}))
        for word in said:
            self.play(self.say_of(word, self.newest()))

    def newest(self) -> int:
        """Return the index of the newest claim among the existing ones; 0 if it does not exist."""
        ids = list(self.play(self.claims()))
        mine = f"c{self.ids}-0"
        return ids.index(mine) if mine in ids else 0

    async def send(
        self, wanted: list[tuple[list[Candidate], str]], wished: list[ClaimRule], limited: dict[str, HostLimit]
    ) -> None:
        self.ids += 1
        places = tuple(Member(f"c{self.ids}-{n}", tuple(one), group) for n, (one, group) in enumerate(wanted))
        covered = [replace(one, members=tuple(n for n in one.members if n < len(places))) for one in wished]
        clock, world, before = await self.cell.tick(), await self.world(), await self.claims()
        call = ClaimCall(
            places, clock.epoch, clock.now_ms, clock.seq, "d", True, HOUR_S * 1000, rules=tuple(covered), limits=limited
        )
        named = ({one.group for one in places} | {one.group for one in covered}) - {""}
        drawn = {slot for one in places for choice in one.candidates for slot in choice.amounts if ":" in slot}
        answer = await self.cell.claims.place(call)
        self.updater.apply_reply(answer)
        if missing := named - world.groups.keys():
            assert answer.outcome is Outcome.UNKNOWN
            assert {f"server-group:{name}" for name in missing} <= set(answer.unknown)
            return
        if not drawn <= world.pools.keys():
            assert (answer.outcome, answer.unknown) == (Outcome.UNKNOWN, ("pool:lic",))
            return
        expected = world.place(before.values(), call)
        assert answer.outcome == (Outcome.FULL if expected is None else Outcome.OK)
        assert [(one.host, one.candidate) for one in answer.placed] == (expected or [])
        if expected is None:
            assert await self.claims() == before
        again = await self.cell.claims.place(call)
        assert again.outcome == (Outcome.FULL if expected is None else Outcome.ALREADY_DONE)

    @rule(word=words, which=st.integers(0, 10**6))
    def say(self, word: str, which: int) -> None:
        self.play(self.say_of(word, which))

    async def say_of(self, word: str, which: int) -> None:
        claims = list((await self.claims()).values())
        if not claims:
            return
        claim = claims[which % len(claims)]
        about = (claim.host, claim.claim_id, claim.token)
        if word == "accept":
            if (await self.cell.claims.accept(*about, HOUR_S)).outcome is Outcome.OK:
                self.note(claim, ClaimStatus.STARTING)
        elif word == "confirm":
            if (await self.cell.claims.confirm(*about)).outcome is Outcome.OK:
                self.note(claim, ClaimStatus.ACTIVE)
        elif word in ("release", "force"):
            await self.cell.claims.release(*about, how=ReleaseMode.FORCE if word == "force" else ReleaseMode.ASK)
        elif word == "fail":
            await self.cell.claims.fail(*about, by_host=False)
        elif word == "fail by host":
            self.note_end(claim, await self.cell.claims.fail(*about, by_host=True))
        else:
            self.note_end(claim, await self.cell.claims.gone(*about, EndReason.RELEASED, {}))

    def note(self, claim: Claim, state: ClaimStatus) -> None:
        """Record the placement in the host's journal."""
        self.journals[claim.host][claim.claim_id] = held_claim(
            claim.claim_id,
            claim.token,
            state,
            claim.slots,
            digest=claim.digest,
            group=claim.server_group,
            counted=claim.counted,
        )

    def note_end(self, claim: Claim, answer: ScriptResult) -> None:
        """Record in the host's journal that the placement has ended, as its host has reported."""
        assert answer.outcome is Outcome.OK
        self.journals[claim.host].pop(claim.claim_id, None)
        self.ended[claim.host][claim.claim_id] = claim.token

    @rule(most=st.integers(0, 4))
    def let_leases_run_out(self, most: int) -> None:
        """Expire the leases of some claims and reconcile all claims: only those must end."""
        claims = self.play(self.claims())
        leased = [id_ for id_, one in claims.items() if one.state in ("claimed", "starting")][:most]
        for claim_id in leased:
            self.play(make_due(self.raw, self.cell, claim_id))
        objects = {thing for one in claims.values() for thing in counted_by(one)}
        assert self.play(self.cell.claims.reconcile(list(claims), objects)) == len(leased)

    # Actions of operators, and failures

    @rule(trouble=troubles, data=st.data())
    def trouble(self, trouble: str, data: st.DataObject) -> None:
        """Do one of several disruptive actions. As separate rules they would be too frequent for claims to succeed."""
        if trouble == "group":
            policy, by, most = data.draw(policies), data.draw(st.sampled_from(BY)), data.draw(st.integers(1, 3))
            most = most if policy is GroupPolicy.ANTI_AFFINITY else 1
            self.play(self.cell.declared.put_group(ServerGroup(data.draw(st.sampled_from(GROUPS)), policy, by, most)))
        elif trouble == "no group":
            self.play(self.cell.declared.delete_group(data.draw(st.sampled_from(GROUPS)), force=True))
        elif trouble == "pool":
            seats = data.draw(st.integers(1, 12))
            self.play(self.cell.declared.put_pool(SharedPool("lic", {"CUSTOM_SEAT": Inventory(seats)})))
        elif trouble == "no pool":
            self.play(self.cell.declared.delete_pool("lic", force=True))
        elif trouble == "host":
            self.play(self.replace_host(data.draw(st.sampled_from(sorted(HOSTS)))))
        elif trouble == "zone":
            self.play(self.change_host(data.draw(st.sampled_from(sorted(HOSTS))), data.draw(domains_of_a_host)))
        else:
            self.play(self.remember())

    async def replace_host(self, name: str) -> None:
        """Remove a host with all its claims, and let a new host of the same name join."""
        await self.cell.hosts.forget(name, force=True)
        self.journals[name], self.ended[name] = {}, {}
        await self.hear(name)

    async def change_host(self, name: str, domains: dict[str, str]) -> None:
        """Let a host report another zone or rack. The journals of its claims keep the former ones."""
        self.hosts[name] = replace(self.hosts[name], domains=domains)
        answer = await self.cell.hosts.report(report_of(name, self.hosts[name]))
        assert answer.outcome is Outcome.OK

    async def remember(self) -> None:
        self.kept = await snapshot(self.raw)

    @rule()
    def fail_over(self) -> None:
        """Take the store back to its last snapshot; every host attests with its journal."""
        self.play(self.go_back())

    async def go_back(self) -> None:
        epoch = (await self.cell.tick()).epoch
        await restore(self.raw, self.kept)
        await self.cell.raise_epoch(epoch)
        for name in HOSTS:
            await self.hear(name)
        claims = await self.claims()
        for name, journal in self.journals.items():
            assert dict.fromkeys(journal, name) == {id_: claims[id_].host for id_ in journal}
        await self.remember()

    # Invariants

    @invariant()
    def all_counts_are_those_of_the_claims(self) -> None:
        self.play(self.compare())

    async def compare(self) -> None:
        claims, counts = await self.claims(), await read_counts(self.cell)
        hashes = await read_hashes(self.raw, [self.cell.keys.claim(one) for one in claims])
        assert await count_problems("c1", counts, counts, Counted([*hashes.values()])) == []
        names = await self.cell.hosts.names()
        hosts = await read_hashes(self.raw, [self.cell.keys.host(name) for name in names])
        for name, fields in zip(names, hosts.values(), strict=True):
            mine = [one for one in claims.values() if one.host == name]
            starting = sum(one.state in ("claimed", "starting") for one in mine)
            assert (int(fields.get("claims", 0)), int(fields.get("starting", 0))) == (len(mine), starting)
            assert int(fields.get("claimed.VCPU", 0)) == sum(one.slots["VCPU"] for one in mine)
            # Members are counted where their host is now.
            where = self.hosts[name].domains
            for one in mine:
                assert one.counted.keys() >= ({"zone"} if one.server_group else set())
                assert one.counted.items() <= where.items()
        # A group or pool that is not declared exists only while a claim counts in it.
        assert not [name for name, one in counts.items() if one.get("members") == "0" and "policy" not in one]
        await self.updater.catch_up()
        assert difference(self.updater.columns, (await take_snapshot(self.cell)).columns) == []


def test_rules_pools_and_counts_hold_through_any_run_of_calls(server: PrivateServer) -> None:
    class Machine(CompanyMachine):
        def __init__(self) -> None:
            super().__init__(server)

    examples = LONG_EXAMPLES if is_long() else SHORT_EXAMPLES
    run_state_machine_as_test(Machine, settings=settings(phases=PHASES, max_examples=examples))
