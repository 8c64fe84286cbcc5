"""Invariants 1 to 6, 8, 9 and 11 of the design: the store agrees with a plain model of it after any sequence of calls.

Every rule makes one call on a real server and compares its reply with the model's. After every step the contents of
the store are compared as well, and so are the replicas of two schedulers.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.decide.fit import fits
from redsched.errors import ClaimIdReused, ClaimState, NoValidHost, Settling
from redsched.model import Candidate, ClaimStatus, EndReason, HostReport, HostStatus, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.scheduler.cell_tasks import CellTasks
from redsched.scheduler.scheduler import plugins_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, Member, ReleaseMode, ScriptResult
from redsched.store.embedded.server import PrivateServer
from tests.support.builders.cells import HOUR_S, make_due
from tests.support.builders.placements import held_claim
from tests.support.builders.played import SETTINGS, PlayedCell
from tests.support.models.model_store import TAKEN_UP, ModelCell
from tests.support.profiles import LONG_EXAMPLES, PHASES, SHORT_EXAMPLES, is_long

HOSTS = ("h1", "h2", "h3")
SLOTS = ("VCPU", "MEMORY_MB")
VERBS = ("accept", "confirm", "renew", "fail_by_host", "fail", "release", "release_force", "gone")
LOOKS = (Request({"VCPU": 1}, claim=False), Request({"VCPU": 2, "MEMORY_MB": 3}, claim=False))

EXAMPLES = LONG_EXAMPLES if is_long() else SHORT_EXAMPLES

hosts = st.sampled_from(HOSTS)
numbers = st.integers(0, 10**6)
# Hosts and amounts are small, so that a few claims already fill a host.
amounts = st.fixed_dictionaries({"VCPU": st.integers(1, 4)}, optional={"MEMORY_MB": st.integers(1, 4)})
inventory = st.builds(
    Inventory,
    st.integers(2, 9),
    reserved=st.sampled_from((0, 0, 2)),
    allocation_ratio=st.sampled_from((1.0, 1.0, 1.5)),
    min_unit=st.sampled_from((1, 1, 1, 2)),
    max_unit=st.sampled_from((None, None, None, 3)),
    step_size=st.sampled_from((1, 1, 1, 2)),
)
inventories = st.fixed_dictionaries({"VCPU": inventory}, optional={"MEMORY_MB": inventory})
candidates = st.lists(st.tuples(st.sampled_from((*HOSTS, *HOSTS, "h4")), amounts), min_size=1, max_size=4)
members = st.lists(candidates, min_size=1, max_size=4)


# The existing claims depend on the random picks of a scheduler, and the choices that Hypothesis draws from must not. So
# no rule has a precondition; a rule that has nothing to act on does nothing.


class StoreMachine(PlayedCell, RuleBasedStateMachine):
    """One store, its model, and two schedulers that follow its feed."""

    def __init__(self, server: PrivateServer) -> None:
        super().__init__(server)
        self.model = ModelCell()
        self.calls: list[ClaimCall] = []
        self.turn = 0
        self.play(self.look())

    async def look(self) -> None:
        """Start two schedulers that follow the feed."""
        self.model.epoch = (await self.cell.tick()).epoch
        self.schedulers = [Scheduler(self.store, SETTINGS, plugins_of(SETTINGS)) for _ in range(2)]
        self.updaters = [next(iter(one.cells)) for one in self.schedulers]
        for one in self.schedulers:
            await self.stack.enter_async_context(following(one.tasks["c1"]))

    # Hosts

    @initialize(first=inventories, second=inventories)
    def begin_with_two_hosts(self, first: dict[str, Inventory], second: dict[str, Inventory]) -> None:
        for name, slots in (("h1", first), ("h2", second)):
            self.play(self.cell.hosts.report(report := HostReport(name, slots, lease_s=HOUR_S)))
            self.model.reported(report)
            self.attest(name)

    @rule(name=hosts, slots=inventories, data=st.data(), attests=st.sampled_from((True, True, True, False)))
    def report(self, name: str, slots: dict[str, Inventory], data: st.DataObject, attests: bool) -> None:
        """Let a host report: it grows, shrinks, has external usage, or is new."""
        external = {slot: data.draw(st.sampled_from((0, 1, 2, 6))) for slot in slots}
        report = HostReport(name, slots, external=external, lease_s=HOUR_S)
        answer = self.play(self.cell.hosts.report(report))
        self.model.reported(report)
        assert (answer.outcome, answer.attested) == (Outcome.OK, self.model.hosts[name].attested)
        if attests:
            self.attest(name)

    @rule(name=hosts)
    def attest(self, name: str) -> None:
        """Let a host attest with the claims that it has accepted, as in a correct journal."""
        held = [
            held_claim(id_, one.token, ClaimStatus(one.state), one.amounts, digest=one.digest)
            for id_, one in self.model.live(name).items()
            if one.state in TAKEN_UP
        ]
        answer = self.play(self.cell.hosts.attest(name, self.model.epoch, None, held))
        assert (answer.outcome, answer.drop) == (self.model.attest(name), ())

    @rule(name=hosts, status=st.sampled_from(HostStatus))
    def set_status(self, name: str, status: HostStatus) -> None:
        answer = self.play(self.cell.hosts.set_status(name, status))
        assert answer.outcome == self.model.set_status(name, status)

    @rule(name=hosts)
    def heartbeat(self, name: str) -> None:
        host = self.model.hosts.get(name)
        answer = self.play(self.cell.hosts.heartbeat(name, HOUR_S))
        assert answer.outcome == ("UNKNOWN" if host is None else "OK" if host.attested else "NOT_ATTESTED")
        if host and host.attested:
            host.alive = True

    @rule(
        kind=st.sampled_from(("lapse", "lose", "lose by force", "forget", "forget by force", "new epoch")), name=hosts
    )
    def trouble(self, kind: str, name: str) -> None:
        """Do an action that closes hosts. As separate rules they would be too frequent for claims to succeed."""
        if kind == "lapse":
            self.lapse(name)
        elif kind in ("lose", "lose by force"):
            force = kind == "lose by force"
            assert self.play(self.cell.hosts.write_off(name, force=force)).outcome == self.model.lose(name, force)
        elif kind == "new epoch":
            self.new_epoch()
        else:
            force = kind == "forget by force"
            assert self.play(self.cell.hosts.forget(name, force)).outcome == self.model.forget(name, force)

    def lapse(self, name: str) -> None:
        """Let the lease of a host expire."""
        host = self.model.hosts.get(name)
        if host is None:
            return
        self.play(self.raw.hset(self.cell.keys.host(name), "alive_until_ms", "1"))
        assert self.play(self.cell.hosts.mark_down(HOSTS)) == int(host.alive)
        host.alive = False

    def new_epoch(self) -> None:
        """Begin an epoch, in which no host has attested; then let two hosts attest."""
        answer = self.play(self.cell.raise_epoch(self.model.epoch))
        assert answer.outcome is Outcome.OK
        self.model.new_epoch(answer.epoch)
        for name in sorted(self.model.hosts)[:2]:
            self.compare_and_attest(name)

    def compare_and_attest(self, name: str) -> None:
        self.play(self.compare_store())
        self.attest(name)

    @rule(name=hosts, reservation=st.sampled_from(("r1", "r2")), kept=amounts, ends=st.booleans())
    def reserve(self, name: str, reservation: str, kept: dict[str, int], ends: bool) -> None:
        """Reserve a host for a request that waits, or end that."""
        host, commands = self.model.hosts.get(name), self.cell.reservations
        if ends:
            outcome = self.play(commands.end(name, reservation))
            is_own = host is not None and host.reservation == reservation
            assert outcome == ("UNKNOWN" if host is None else "OK" if is_own else "ALREADY_DONE")
            if host is not None and is_own:
                host.reservation, host.kept = "", {}
            return
        outcome = self.play(commands.put(name, reservation, kept, HOUR_S * 1000, 0, 1000))
        if host is None:
            assert outcome is Outcome.UNKNOWN
        elif host.reservation not in ("", reservation):
            assert outcome is Outcome.IN_USE
        else:
            assert outcome is Outcome.OK
            host.reservation, host.kept = reservation, dict(kept)

    # Claims

    @rule(places=members, fresh=st.booleans(), clock_off_ms=st.sampled_from((0, 0, 0, 0, 0, 0, -601_000, 3_600_000)))
    def claim(self, places: list[list[tuple[str, dict[str, int]]]], fresh: bool, clock_off_ms: int) -> None:
        """Claim under new ids; sometimes the caller's clock is wrong."""
        wanted = []
        for one in places:
            self.ids += 1
            wanted.append(Member(f"c{self.ids}", tuple(Candidate(*entry) for entry in one)))
        clock = self.play(self.cell.tick())
        lease_ms = HOUR_S * 1000
        call = ClaimCall(tuple(wanted), clock.epoch, clock.now_ms + clock_off_ms, 0, f"d{self.ids}", fresh, lease_ms)
        self.send(call, late=bool(clock_off_ms))
        self.calls.append(replace(call, now_ms=clock.now_ms))

    @rule(wanted=amounts, words=st.lists(st.sampled_from(("accept", "accept", *VERBS)), min_size=1, max_size=4))
    def live(self, wanted: dict[str, int], words: list[str]) -> None:
        """Claim wherever it fits, and execute a few verbs on the claim: independent rules rarely combine to that."""
        self.claim([[(name, wanted) for name in HOSTS]], fresh=True, clock_off_ms=0)
        if f"c{self.ids}" in self.model.claims:
            for verb in words:
                self.say_of(f"c{self.ids}", verb)

    @rule(name=hosts, slot=st.sampled_from(SLOTS), over=st.integers(0, 1))
    def take_the_last_unit(self, name: str, slot: str, over: int) -> None:
        """Claim all that is left of a slot, or one unit more."""
        amount = (self.model.free(name, slot) if name in self.model.hosts else 0) + over
        if amount > 0:
            self.claim([[(name, {slot: amount})]], fresh=True, clock_off_ms=0)

    @rule(which=numbers, other=st.sampled_from(("", "", "", "digest", "first member", "now")))
    def send_again(self, which: int, other: str) -> None:
        """Repeat an earlier call: unchanged, with another digest, its first member only, or the current epoch."""
        if not self.calls:
            return
        call = self.calls[which % len(self.calls)]
        if other == "digest":
            call = replace(call, digest="other")
        elif other == "first member":
            call = replace(call, members=call.members[:1])
        elif other == "now":
            call = replace(call, epoch=self.model.epoch)
        self.send(call)

    def send(self, call: ClaimCall, late: bool = False) -> None:
        # The call has seen the current `seq`: hosts are replaced all the time here, and STALE_VIEW has its own tests.
        call = replace(call, seen_seq=self.play(self.cell.tick()).seq)
        ids = [one.id for one in call.members]
        expected = self.model.known_outcome(ids, call.digest, call.fresh)
        if not expected:
            expected = "WRONG_EPOCH" if call.epoch != self.model.epoch else "EXPIRED" if late else ""
        if not expected and not call.fresh and not self.model.settled:
            expected = "SETTLING"
        if not expected:
            self.place(call)
            return
        answer = self.play(self.cell.claims.place(call))
        assert answer.outcome == expected
        if expected == "ALREADY_DONE":
            assert [(one.host, one.token, one.state) for one in answer.placed] == [
                (one.host, one.token, one.state) for one in map(self.model.claims.__getitem__, ids)
            ]

    def place(self, call: ClaimCall) -> None:
        """Send a call whose ids are all new; expect the first candidates that fit, or FULL."""
        python_says = {one: self.fits_in_python(one) for member in call.members for one in set_of(member.candidates)}
        members = [(one.id, [(c.host, c.amounts) for c in one.candidates]) for one in call.members]
        expected = self.model.place(members, call.digest)
        answer = self.play(self.cell.claims.place(call))
        assert answer.outcome == ("FULL" if expected is None else "OK")
        assert [one.host for one in answer.placed] == [host for _, host in expected or ()]
        for claim_id, one in zip((one.id for one in call.members), answer.placed, strict=bool(expected)):
            self.model.claims[claim_id].token = one.token
        for looked_at in answer.looked_at:
            held = self.model.claimed(looked_at.host)
            assert dict(looked_at.claimed) == {slot: held[slot] for slot in looked_at.claimed}
        # Python's fit, computed before the call, selects the same candidate of the first member as Lua's.
        first = call.members[0].candidates
        chosen = next((number for number, one in enumerate(first) if python_says[key_of(one)]), None)
        if expected is not None:
            assert chosen is not None
            assert first[chosen].host == expected[0][1]

    def fits_in_python(self, candidate: "tuple[str, tuple[tuple[str, int], ...]]") -> bool:
        """Return whether a candidate fits by Python's fit check, from the fields in the store."""
        host, wanted = candidate
        if self.model.closed(host):
            return False
        held = self.play(self.raw.hgetall(self.cell.keys.host(host)))

        def field(kind: str, slot: str, absent: int) -> int:
            return int(held.get(f"{kind}.{slot}", absent))

        return all(
            fits(
                amount,
                field("capacity", slot, 0),
                field("claimed", slot, 0),
                field("external", slot, 0) + field("kept", slot, 0),
                field("min", slot, 1),
                field("max", slot, 2**53 - 1),
                field("step", slot, 1),
            )
            for slot, amount in wanted
        )

    @rule(verb=st.sampled_from(VERBS), which=numbers, token=st.sampled_from(("its own", "its own", "its own", "other")))
    def say(self, verb: str, which: int, token: str) -> None:
        """Execute any verb on any claim that ever existed, in any order and any number of times."""
        if not self.model.claims:
            return
        self.say_of(sorted(self.model.claims)[which % len(self.model.claims)], verb, token)

    def say_of(self, claim_id: str, verb: str, token: str = "its own") -> None:
        claim = self.model.claims[claim_id]
        said = claim.token if token == "its own" else f"{self.model.epoch}.999999"
        answer = self.play(self.speak(verb, claim.host, claim_id, said))
        assert answer.outcome == self.model.say(verb, claim_id, claim.host, said)
        if verb == "gone" and answer.outcome is Outcome.OK:
            self.model.hosts[claim.host].external["VCPU"] = 1

    def speak(self, verb: str, host: str, claim_id: str, token: str) -> Coroutine[Any, Any, ScriptResult]:
        """Return the typed call of a verb."""
        cell = self.cell
        calls: dict[str, Any] = {
            "accept": lambda: cell.claims.accept(host, claim_id, token, HOUR_S),
            "confirm": lambda: cell.claims.confirm(host, claim_id, token),
            "renew": lambda: cell.claims.renew(host, claim_id, token, HOUR_S),
            "fail_by_host": lambda: cell.claims.fail(host, claim_id, token, by_host=True),
            "fail": lambda: cell.claims.fail(host, claim_id, token, by_host=False),
            "release": lambda: cell.claims.release(host, claim_id, token),
            "release_force": lambda: cell.claims.release(host, claim_id, token, how=ReleaseMode.FORCE),
            "gone": lambda: cell.claims.gone(host, claim_id, token, EndReason.RELEASED, {"VCPU": 1}),
        }
        said: Coroutine[Any, Any, ScriptResult] = calls[verb]()
        return said

    @rule(which=numbers, host=hosts)
    def say_without_token_or_to_another_host(self, which: int, host: str) -> None:
        if not self.model.claims:
            return
        claim_id = sorted(self.model.claims)[which % len(self.model.claims)]
        answer = self.play(self.cell.claims.release(host, claim_id))
        assert answer.outcome == self.model.say("release", claim_id, host, None)

    @rule(which=numbers)
    def let_a_lease_run_out(self, which: int) -> None:
        leased = sorted(id_ for id_, one in self.model.claims.items() if one.state in ("claimed", "starting"))
        if not leased:
            return
        claim_id = leased[which % len(leased)]
        self.play(make_due(self.raw, self.cell, claim_id))
        self.model.claims[claim_id].due = True

    @rule()
    def sweep(self) -> None:
        """Reconcile all claims; exactly those that are due must end."""
        assert self.play(self.cell.claims.reconcile(self.model.claims)) == self.model.sweep()

    @rule(wanted=amounts, count=st.integers(1, 3), by=st.integers(0, 1), named=st.booleans())
    def select(self, wanted: dict[str, int], count: int, by: int, named: bool) -> None:
        """Send a request through a scheduler; it may be refused only if the store has no room or is not settled."""
        self.play(self.cell.claims.reconcile(self.model.claims))
        self.model.sweep()
        ids = tuple(f"s{self.ids}-{number}" for number in range(count)) if named else ()
        self.ids += 1
        # The model knows no further attempts.
        request = Request(wanted, count=count, claim_ids=ids, lease_s=HOUR_S, max_attempts=1)
        room = sum(self.model.places(name, wanted) for name in self.model.hosts)
        unsettled = not self.model.settled
        if room < count or (named and unsettled):
            with pytest.raises((NoValidHost, Settling) if unsettled else NoValidHost):
                self.play(self.schedulers[by].select(request))
            return
        found = self.play(self.schedulers[by].select(request))
        for one in found.selections:
            assert one.claim_id is not None
            assert one.token is not None
            assert self.model.places(one.host, wanted)
            self.model.put(one.claim_id, one.host, one.token, request.digest(), wanted)
        # Until all of a gang are active, the end of one ends all: the model knows only claims that stand alone.
        for one in found.selections if count > 1 else ():
            for verb in ("accept", "confirm"):
                self.say_of(one.claim_id or "", verb)
        if not named:
            return
        again = self.play(self.schedulers[1 - by].select(request))
        assert (again.fresh, [one.token for one in again.selections]) == (
            False,
            [one.token for one in found.selections],
        )
        with pytest.raises(ClaimIdReused):
            self.play(self.schedulers[by].select(replace(request, project="other")))
        self.play(self.schedulers[by].claims.release(ids[0], force=True))
        self.model.say("release_force", ids[0], found.selections[0].host, None)
        with pytest.raises(ClaimState):
            self.play(self.schedulers[1 - by].select(request))

    # Invariants

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        self.play(self.compare_store())

    async def compare_store(self) -> None:
        model, keys = self.model, self.cell.keys
        assert sorted(await self.cell.hosts.names()) == sorted(model.hosts)
        leased = {id_ for id_, one in model.claims.items() if one.state in ("claimed", "starting")}
        assert set(await self.cell.due.deadlines()) == leased
        pipe = self.raw.pipeline(transaction=False)
        for name in HOSTS:
            pipe.hgetall(keys.host(name))
            pipe.smembers(keys.claims(name))
            pipe.xrange(keys.inbox(name))
        for claim_id in model.claims:
            pipe.hgetall(keys.claim(claim_id))
        pipe.hmget(keys.meta, "epoch", "settled")
        found = await pipe.execute()
        assert found[-1] == [model.epoch, str(int(model.settled))]
        for number, name in enumerate(HOSTS):
            self.compare_host(name, *found[3 * number : 3 * number + 3])
        for (claim_id, claim), fields in zip(model.claims.items(), found[3 * len(HOSTS) : -1], strict=True):
            held = {slot: fields.get(f"amount.{slot}") for slot in claim.amounts}
            assert (
                fields["state"],
                fields.get("end_reason", ""),
                fields["host"],
                fields["token"],
                fields["digest"],
            ) == (
                claim.state,
                claim.end_reason if claim.state in ("ending", "ended") else "",
                claim.host,
                claim.token,
                claim.digest,
            ), claim_id
            assert held == {
                slot: None if claim.state == "ended" else str(amount) for slot, amount in claim.amounts.items()
            }

    def compare_host(self, name: str, fields: dict[str, str], ids: set[str], inbox: list[Any]) -> None:
        host = self.model.hosts.get(name)
        if host is None:
            assert (fields, ids, inbox) == ({}, set(), [])
            return
        live, sums = self.model.live(name), self.model.claimed(name)
        assert ids == set(live)
        # Conservation: `claimed` is the sum over the claims, in every slot.
        claimed = {key[8:]: int(value) for key, value in fields.items() if key.startswith("claimed.")}
        assert {slot: amount for slot, amount in claimed.items() if amount} == {s: n for s, n in sums.items() if n}
        # Single writers: fields of the agent and the operator keep the values that these set, despite later claims.
        assert fields["status"] == host.status
        assert fields["alive"] == str(int(host.alive))
        external = {key[9:]: int(value) for key, value in fields.items() if key.startswith("external.")}
        assert external == host.external
        kept = {key[5:]: int(value) for key, value in fields.items() if key.startswith("kept.")}
        assert (fields.get("reservation", ""), kept) == (host.reservation, host.kept)
        for slot, inventory in host.report.inventories.items():
            assert fields[f"capacity.{slot}"] == str(inventory.capacity)
            assert fields[f"max.{slot}"] == str(inventory.largest)
        capacities = {key[9:] for key in fields if key.startswith("capacity.")}
        assert capacities == set(host.report.inventories)
        # Notifications: each exists once, and they are numbered densely.
        assert fields.get("inbox", "0") == str(host.notifications_sent)
        notifications = [(values["op"], values["claim"], values["token"]) for _, values in inbox]
        assert sorted(notifications) == sorted(
            (one.notification, id_, one.token) for id_, one in live.items() if one.notification
        )
        assert all(int(values["number"]) <= host.notifications_sent for _, values in inbox)

    @invariant()
    def schedulers_see_all_that_was_answered(self) -> None:
        if not self.model.can_be_swept():  # otherwise this read would sweep them before any other step could
            self.play(self.compare_schedulers())

    async def compare_schedulers(self) -> None:
        self.turn = 1 - self.turn
        one, other = LOOKS[self.turn], LOOKS[1 - self.turn]
        explained, found = await asyncio.gather(
            self.schedulers[self.turn].explain(one), self.dry_run(self.schedulers[1 - self.turn], other)
        )
        assert (explained.hosts, explained.fits) == (len(self.model.hosts), len(self.model.fitting(one.resources)))
        fitting = self.model.fitting(other.resources)
        assert found in fitting if fitting else found == ""
        snapshot = await take_snapshot(self.cell)
        for cell in self.updaters:
            assert difference(cell.updater.columns, snapshot.columns) == []

    async def dry_run(self, scheduler: Scheduler, request: Request) -> str:
        """Return the host that a dry run selects; '' if it is refused."""
        try:
            return (await scheduler.select(request)).selections[0].host
        except (NoValidHost, Settling):
            return ""


Key = tuple[str, tuple[tuple[str, int], ...]]


@asynccontextmanager
async def following(tasks: CellTasks) -> AsyncIterator[None]:
    """Follow and sweep a cell inside the context, which begins when the replica has caught up."""
    try:
        await tasks.updater.start()
        tasks.sweeper.start()
        yield
    finally:
        await tasks.sweeper.stop()
        await tasks.close()


def key_of(candidate: Candidate) -> Key:
    """Return a candidate as a hashable key."""
    return candidate.host, tuple(candidate.amounts.items())


def set_of(candidates: tuple[Candidate, ...]) -> set[Key]:
    """Return the distinct candidates."""
    return {key_of(one) for one in candidates}


def test_the_store_and_its_model_agree_through_any_run_of_calls(server: PrivateServer) -> None:
    class Machine(StoreMachine):
        def __init__(self) -> None:
            super().__init__(server)

    run_state_machine_as_test(Machine, settings=settings(phases=PHASES, max_examples=EXAMPLES))
