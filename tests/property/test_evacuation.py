"""The claim script keeps server groups to their policy while members join, hosts die, are evacuated and return.

The reply to each claim call is compared with a result computed from all existing claims. Members on live hosts satisfy
the policy; under affinity, only as long as no dead host with claims has returned.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from redsched.model import (
    Candidate,
    Claim,
    ClaimRule,
    ClaimStatus,
    EndReason,
    GroupPolicy,
    HostReport,
    HostStatus,
    Inventory,
    Placement,
    RuleKind,
    ServerGroup,
)
from redsched.operate.audit.counts import Counted, count_problems, read_counts
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, JournaledClaim, Member, Replacement
from redsched.store.embedded.server import PrivateServer
from tests.support.builders.cells import HOUR_S
from tests.support.builders.placements import held_claim
from tests.support.builders.played import PlayedCell
from tests.support.models.plain_affinity import PlainHost, World
from tests.support.profiles import LONG_EXAMPLES, PHASES, SHORT_EXAMPLES, is_long

ZONES = {"h1": "az1", "h2": "az1", "h3": "az2", "h4": "az2", "h5": "az3"}
HOSTS = {name: PlainHost({"VCPU": 5}, {"zone": zone}) for name, zone in ZONES.items()}
POLICIES = (GroupPolicy.AFFINITY, GroupPolicy.ANTI_AFFINITY, GroupPolicy.SOFT_AFFINITY)
LEVEL = ClaimRule(RuleKind.SKEW, "zone", (0,), "web", 1, ("az1", "az2", "az3"))

policies = st.sampled_from(POLICIES)
orders = st.permutations(sorted(HOSTS))
names = st.sampled_from(sorted(HOSTS))
which = st.integers(0, 10**6)
asked = st.lists(st.tuples(orders, st.booleans()), min_size=1, max_size=3)


MOVABLE = (ClaimStatus.CLAIMED, ClaimStatus.STARTING, ClaimStatus.ACTIVE)


def going_to(claim: Claim) -> Placement:
    """Return the latest placement of a claim."""
    return max(claim.placements, key=lambda one: int(one.placed.rpartition(".")[2]))


class EvacuationMachine(PlayedCell, RuleBasedStateMachine):
    """One group on five hosts in three zones."""

    def __init__(self, server: PrivateServer) -> None:
        super().__init__(server)
        self.group = ServerGroup("web", GroupPolicy.SOFT_AFFINITY)
        self.lost: set[str] = set()
        self.one_came_back = False

    @initialize(policy=policies, by=st.sampled_from(("host", "zone")), most=st.integers(1, 2), wanted=asked)
    def begin(self, policy: GroupPolicy, by: str, most: int, wanted: list[tuple[list[str], bool]]) -> None:
        self.group = ServerGroup("web", policy, by, most if policy is GroupPolicy.ANTI_AFFINITY else 1)
        self.play(self.cell.declared.put_group(self.group))
        for name in HOSTS:
            self.play(self.hear(name, []))
        self.join(wanted)

    async def hear(self, name: str, held: list[JournaledClaim]) -> None:
        """Let a host report, and attest with these claims in its journal."""
        await self.cell.hosts.report(
            HostReport(name, {"VCPU": Inventory(5)}, zone=ZONES[name], lease_s=HOUR_S),
        )
        assert (await self.cell.hosts.attest(name, "", None, held, (), HOUR_S)).outcome in (
            Outcome.OK,
            Outcome.ALREADY_DONE,
        )

    async def claims(self) -> dict[str, Claim]:
        found = await self.cell.claims.read(await self.cell.audit.claim_ids())
        return {id_: found[id_] for id_ in sorted(found) if found[id_].state is not ClaimStatus.ENDED}

    # Claims

    @rule(wanted=asked)
    def grow(self, wanted: list[tuple[list[str], bool]]) -> None:
        self.join(wanted)

    def join(self, wanted: list[tuple[list[str], bool]]) -> None:
        """Claim new members."""
        for order, is_level in wanted:
            self.play(self.ask(order, None, is_level))

    @rule(number=which, wanted=asked)
    def die(self, number: int, wanted: list[tuple[list[str], bool]]) -> None:
        """Write off a host, one with claims if possible, and evacuate some of its claims."""
        hosts = sorted({one.host for one in self.play(self.claims()).values()} - self.lost) or sorted(HOSTS)
        name = hosts[number % len(hosts)]
        self.play(self.cell.hosts.write_off(name, evacuate=True, force=True))
        self.lost.add(name)
        self.evacuate(wanted, number)

    @rule(wanted=asked, number=which)
    def go_on(self, wanted: list[tuple[list[str], bool]], number: int) -> None:
        """Evacuate further claims, and make one placement active."""
        self.evacuate(wanted, number)
        self.make_active(number)

    def evacuate(self, wanted: list[tuple[list[str], bool]], number: int) -> None:
        """Place some claims of dead hosts again, elsewhere."""
        for order, is_level in wanted:
            self.place_again(order, is_level, number, self.lost)

    @rule(order=orders, number=which)
    def move(self, order: list[str], number: int) -> None:
        """Begin to move a claim of a live host."""
        self.place_again(order, False, number, HOSTS.keys() - self.lost)

    def place_again(self, order: list[str], is_level: bool, number: int, hosts: Collection[str]) -> None:
        claims = self.play(self.claims()).values()
        chosen = [one for one in claims if one.host in hosts and one.state in MOVABLE and len(one.placements) == 1]
        if chosen:
            self.play(self.ask(order, chosen[number % len(chosen)], is_level))

    async def ask(self, order: list[str], old: Claim | None, is_level: bool) -> None:
        self.ids += 1
        again = Replacement(old.host, old.token, EndReason.MOVED) if old else None
        hosts = [name for name in order if old is None or name != old.host]
        candidates = tuple(Candidate(name, {"VCPU": 1}) for name in hosts)
        member = Member(old.claim_id if old else f"c{self.ids}", candidates, "web", again)
        clock, before = await self.cell.tick(), await self.claims()
        call = ClaimCall((member,), clock.epoch, clock.now_ms, clock.seq, "d", True, HOUR_S * 1000)
        rules = (LEVEL,) if is_level else ()
        # The caller lists all hosts as written off; the script checks which of them are.
        answer = await self.cell.claims.place(replace(call, rules=rules, written_off=tuple(sorted(HOSTS))))
        world = World(HOSTS, {"web": self.group}, {}, self.lost)
        expected = world.place(before.values(), replace(call, rules=rules))
        assert answer.outcome == (Outcome.FULL if expected is None else Outcome.OK)
        assert [(one.host, one.candidate) for one in answer.placed] == (expected or [])

    def make_active(self, number: int) -> None:
        """Let a live host accept and confirm a new placement; the previous placement ends."""
        claims = self.play(self.claims()).values()
        placed = [one.view(place) for one in claims for place in one.placements]
        new = [one for one in placed if one.state is ClaimStatus.CLAIMED and one.host not in self.lost]
        if new:
            self.play(self.arrive(new[number % len(new)]))

    async def arrive(self, claim: Claim) -> None:
        about = (claim.host, claim.claim_id, claim.token)
        assert (await self.cell.claims.accept(*about, HOUR_S)).outcome is Outcome.OK
        assert (await self.cell.claims.confirm(*about)).outcome is Outcome.OK
        await self.reconcile(claim.claim_id)
        for one in (await self.claims())[claim.claim_id].placements:
            if one.state is ClaimStatus.ENDING and one.host not in self.lost:
                await self.cell.claims.gone(one.host, claim.claim_id, one.token, EndReason.MOVED, {})

    async def reconcile(self, claim_id: str) -> None:
        for claim in (await self.cell.claims.read([claim_id])).values():
            await self.cell.claims.reconcile([claim_id], counted_by(claim))

    @rule(number=which)
    def work(self, number: int) -> None:
        self.make_active(number)

    @rule(number=which)
    def release(self, number: int) -> None:
        """Release a claim, and let its hosts report that its work has stopped."""
        claims = list(self.play(self.claims()).values())
        if claims:
            self.play(self.give_back(claims[number % len(claims)]))

    async def give_back(self, claim: Claim) -> None:
        if (await self.cell.claims.release(claim.host, claim.claim_id)).outcome is Outcome.ENDING:
            for one in claim.placements:
                await self.cell.claims.gone(one.host, claim.claim_id, one.token, EndReason.RELEASED, {})
        await self.reconcile(claim.claim_id)

    # Hosts

    @rule(name=names)
    def come_back(self, name: str) -> None:
        if name in self.lost:
            self.play(self.return_of(name))
            self.lost.remove(name)

    async def return_of(self, name: str) -> None:
        """Let a host return with the claims that were active there in its journal."""
        claims = (await self.claims()).values()
        there = [one.view(place) for one in claims for place in one.placements if place.host == name]
        self.one_came_back = self.one_came_back or bool(there)
        held = [
            held_claim(one.claim_id, one.token, one.state, one.slots, digest="d", group="web", counted=one.counted)
            for one in there
            if one.state is ClaimStatus.ACTIVE
        ]
        await self.hear(name, held)
        await self.cell.hosts.set_status(name, HostStatus.ENABLED)

    # Invariants

    @invariant()
    def the_policy_holds_among_those_that_live(self) -> None:
        claims = self.play(self.claims())
        living = [one.view(going_to(one)) for one in claims.values() if going_to(one).host not in self.lost]
        where = Counter(one.host if self.group.by == "host" else one.counted["zone"] for one in living)
        if self.group.policy is GroupPolicy.ANTI_AFFINITY:
            assert max(where.values(), default=0) <= self.group.max_per_host
        elif self.group.policy is GroupPolicy.AFFINITY and not self.one_came_back:
            assert len(where) <= 1

    @invariant()
    def the_counts_are_those_of_the_claims(self) -> None:
        self.play(self.compare())

    async def compare(self) -> None:
        claims, counts = await self.claims(), await read_counts(self.cell)
        hashes = await asyncio.gather(*(self.raw.hgetall(self.cell.keys.claim(one)) for one in claims))
        assert await count_problems("c1", counts, counts, Counted(hashes)) == []


def test_groups_keep_to_their_policy_while_hosts_die_and_come_back(server: PrivateServer) -> None:
    class Machine(EvacuationMachine):
        def __init__(self) -> None:
            super().__init__(server)

    examples = LONG_EXAMPLES if is_long() else SHORT_EXAMPLES
    run_state_machine_as_test(Machine, settings=settings(phases=PHASES, max_examples=examples, stateful_step_count=30))
