"""Placements through any history: moves, failures, shelving, releases, lost data, write-offs, and whoever comes back.

After every step no counter is wrong, and nothing is free that a host runs. And once everybody has done what there is
to do: at most one placement of a claim lives; what its owner gave back does not; what a host had confirmed does,
unless its owner gave it back, its host failed it or an operator wrote its host off.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from redsched.model import Why
from redsched.store.server import PrivateServer
from tests.support.histories import Histories
from tests.support.played import PlayedCell
from tests.support.profiles import LONG_EXAMPLES, PHASES, SHORT_EXAMPLES, is_long

HOSTS = ("h1", "h2", "h3")
EXAMPLES = LONG_EXAMPLES if is_long() else 2 * SHORT_EXAMPLES

hosts = st.sampled_from(HOSTS)
numbers = st.integers(0, 10**6)
BY_OWNER = ("release", "shelve", "call off", "copy")


# As in test_store_model.py no rule has a precondition: without a subject it does nothing.


class HistoriesMachine(PlayedCell, RuleBasedStateMachine):
    """Chooses who does what next. Few claims, so that much happens to each."""

    def __init__(self, server: PrivateServer) -> None:
        super().__init__(server)
        self.world = Histories(self.cell, self.raw, HOSTS)

    @initialize(name=hosts)
    def begin(self, name: str) -> None:
        for agent in self.world.agents.values():
            self.play(self.world.attest(agent))
        self.claim(name)
        self.hear(name, confirm=True)

    def some(self, which: int) -> str:
        """One of the last two claims."""
        latest = list(self.world.claims)[-2:]
        return latest[which % len(latest)]

    @rule(name=hosts)
    def claim(self, name: str) -> None:
        if len(self.world.claims) < 4:
            self.play(self.world.claim(name))

    @rule(name=hosts, confirm=st.booleans())
    def hear(self, name: str, confirm: bool) -> None:
        """A host does what it is told."""
        agent = self.world.agents[name]
        if not agent.is_dead:
            self.play(self.world.hear(agent, confirm))

    @rule(name=hosts)
    def attest(self, name: str) -> None:
        """Also one that was written off."""
        self.play(self.world.attest(self.world.agents[name]))

    @rule(which=numbers, name=hosts, by=st.booleans(), comes_up=st.booleans())
    def move(self, which: int, name: str, by: bool, comes_up: bool) -> None:
        """And perhaps the target comes up at once."""
        self.play(self.world.place_again(self.some(which), name, Why.MOVED, 3600 if by else 0))
        if comes_up:
            self.hear(name, confirm=True)

    @rule(which=numbers, name=hosts, why=st.sampled_from((Why.FAILED, Why.SHELVED)), comes_up=st.booleans())
    def place_again(self, which: int, name: str, why: Why, comes_up: bool) -> None:
        self.play(self.world.place_again(self.some(which), name, why))
        if comes_up:
            self.hear(name, confirm=True)

    @rule(which=numbers, word=st.sampled_from(BY_OWNER))
    def owner(self, which: int, word: str) -> None:
        claim_id, world = self.some(which), self.world
        words = {
            "release": lambda: world.release(claim_id, Why.RELEASED),
            "shelve": lambda: world.release(claim_id, Why.SHELVED),
            "call off": lambda: world.call_off(claim_id),
            "copy": lambda: world.send_again(which),
        }
        self.play(words[word]())

    @rule(which=numbers, of=st.sampled_from(("", "lease", "move")))
    def reconcile(self, which: int, of: str) -> None:
        claim_id = self.some(which)
        self.play(self.world.expire(claim_id, of == "move") if of else self.world.reconcile(claim_id))

    @rule(which=numbers, again=st.sampled_from((None, True)))
    def fail(self, which: int, again: bool | None) -> None:
        """A host fails something that it has."""
        found = [one for claim_id in self.world.claims for one in self.world.entries(claim_id)]
        found = [one for one in found if not one[0].is_dead]
        if found:
            self.play(self.world.fail(*found[which % len(found)], again))

    @rule(name=hosts)
    def write_off(self, name: str) -> None:
        self.play(self.world.write_off(self.world.agents[name]))

    @rule()
    def remember(self) -> None:
        self.play(self.world.remember())

    @rule(which=st.integers(0, 3), heard=st.permutations(HOSTS), number=st.integers(0, 3), repeats=st.booleans())
    def lose(self, which: int, heard: list[str], number: int, repeats: bool) -> None:
        """The store goes back, or is wiped; some hosts attest, and schedulers repeat what they have closed, or will."""
        snapshots = self.world.snapshots
        self.play(self.world.lose(snapshots[which % len(snapshots)] if snapshots and which else None))
        for name in heard[:number]:
            self.attest(name)
        if repeats:
            self.play(self.world.repeat_closings())

    @rule()
    def settle(self) -> None:
        self.play(self.world.settle())
        self.play(self.world.check_settled())

    @invariant()
    def nothing_is_wrong(self) -> None:
        self.play(self.world.check_always())

    def teardown(self) -> None:
        try:
            if self.world.claims:
                self.settle()
        finally:
            super().teardown()


def test_what_lives_is_what_its_owners_were_told_after_any_history(server: PrivateServer) -> None:
    class Machine(HistoriesMachine):
        def __init__(self) -> None:
            super().__init__(server)

    run_state_machine_as_test(Machine, settings=settings(phases=PHASES, max_examples=EXAMPLES, stateful_step_count=30))
