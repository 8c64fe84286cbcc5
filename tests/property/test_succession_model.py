"""Claims that succeed each other, gangs, resizes, shelving and local work beside a plain model of them, in any run.

The machine of test_store_model.py asks who gets what; here hosts have room, and it is about what becomes of claims:
by whatever words, in whichever order, with new epochs in between and chores done by whoever comes first.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from redsched.model import Why
from redsched.store import Outcome
from redsched.store.server import PrivateServer
from tests.support.lives_at_play import HOSTS, ROOM, STALE, LivesAtPlay, Words
from tests.support.model_life import WORDS_OF_HOSTS
from tests.support.profiles import LONG_EXAMPLES, PHASES, SHORT_EXAMPLES, is_long

EXAMPLES = LONG_EXAMPLES if is_long() else SHORT_EXAMPLES

RELEASED = ("release", "release_force", "release_whole", "release_unless_active")
GIVEN_BACK = ("fail_by_host", "fail", *RELEASED, "gone", "shelve")
SAID = ("accept", "confirm", "renew", *GIVEN_BACK)
PLAYED = ("forget_shelved", "succeed", "resize", "resized", "lapse", "deadline", "work_off")
LIKELY = ("arrive", "arrive", "succeed", "work_off", "gone")
REASONS = (Why.MOVED, Why.MOVED, Why.FAILED, Why.SHELVED)

hosts = st.sampled_from(HOSTS)
numbers = st.integers(0, 10**6)
amounts = st.fixed_dictionaries({"VCPU": st.integers(1, 4)}, optional={"MEMORY_MB": st.integers(1, 4)})
# A word, and which of the claims at hand it is about. What a run would seldom come to by single words.
words = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from((*LIKELY, *LIKELY, *LIKELY, *SAID, *PLAYED))), min_size=1, max_size=10
)
places = st.lists(st.integers(0, 2), min_size=1, max_size=3)


class SuccessionMachine(LivesAtPlay, RuleBasedStateMachine):
    """Chooses what is said. As in the other machine no rule has a precondition: without a subject it does nothing."""

    @rule(where=places, wanted=amounts, is_gang=st.booleans(), then=words)
    def claim(self, where: list[int], wanted: dict[str, int], is_gang: bool, then: Words) -> None:
        """Claims, perhaps a gang, and words on them."""
        self.play_words(self.place(where, wanted, is_gang), then)

    @rule(which=numbers, why=st.sampled_from(REASONS), where=numbers, by=st.booleans(), then=words)
    def succeed_by(self, which: int, why: Why, where: int, by: bool, then: Words) -> None:
        """A claim that is to succeed another, mostly one that can be succeeded, and words on both."""
        can_be = [one for one in self.model.claims.values() if not self.model.may_succeed(one, why)]
        former = can_be[-1 - which % len(can_be)] if can_be and which % 4 else self.some(which)
        if former:
            self.place_anew(former, why, where, by, then)

    @rule(which=numbers, then=words)
    def say(self, which: int, then: Words) -> None:
        """Any words on any claims there ever were."""
        latest = list(self.model.claims)[-8:]
        if latest:
            self.play_words(latest[which % len(latest) :] + latest[: which % len(latest)], then)

    @rule(which=numbers, word=st.sampled_from(SAID))
    def say_with_anothers_token(self, which: int, word: str) -> None:
        claim = self.some(which)
        if claim:
            told = self.model.hosts[claim.host].can_be_told
            assert self.play(self.speak(word, claim, STALE)).outcome == ("STALE" if told else "ATTEST")

    @rule(which=numbers, wanted=amounts, token=st.sampled_from(("own", "own", "earlier", "other")), full=st.booleans())
    def resize_any(self, which: int, wanted: dict[str, int], token: str, full: bool) -> None:
        """The owner wants other amounts, perhaps again, or more than there is."""
        claim = self.some(which)
        if claim:
            said = {"own": "", "earlier": claim.resized_from or STALE, "other": STALE}[token]
            self.resize(claim, {**wanted, "VCPU": 2 * ROOM} if full else wanted, said)

    @rule(name=hosts, number=st.integers(1, 2), wanted=amounts, token=st.sampled_from(("own", "own", "other")))
    def local(self, name: str, number: int, wanted: dict[str, int], token: str) -> None:
        """A host's word about work of its own; now and then it names a claim that is none."""
        claim_id = f"l{number}"
        known = self.model.claims.get(claim_id)
        said = STALE if token == "other" else known.token if known else ""
        answer = self.play(self.cell.claim_local(name, claim_id, wanted, token=said))
        assert answer.outcome == self.model.local(name, claim_id, said, wanted)
        if answer.outcome is Outcome.OK:
            self.model.claims[claim_id].token = answer.facts[0]

    @rule(which=numbers, name=hosts)
    def local_by_anothers_id(self, which: int, name: str) -> None:
        claim = self.some(which)
        if claim is not None and not claim.is_local:
            answer = self.play(self.cell.claim_local(name, claim.id, {"VCPU": 1}, token=claim.token))
            assert answer.outcome == self.model.local(name, claim.id, claim.token, {"VCPU": 1})

    @rule(turn=numbers, only=st.integers(0, 3))
    def chores(self, turn: int, only: int) -> None:
        self.work_off(turn, only)

    @rule(which=numbers)
    def end_a_gang(self, which: int) -> None:
        """Only who has read that it failed does that: late, when perhaps another has done it."""
        failed = sorted(one for one, gang in self.model.gangs.items() if gang.why)
        if failed:
            gang = failed[which % len(failed)]
            assert self.play(self.cell.end_gang(gang)) == self.model.end_gang(gang)

    @rule(data=st.data(), away=st.sampled_from(("", "", *HOSTS)), then=words)
    def new_epoch(self, data: st.DataObject, away: str, then: Words) -> None:
        """The store may have lost something; hosts attest by journals that are true, ahead or behind, or stay away."""
        self.play(self.cell.raise_epoch(self.play(self.cell.tick()).epoch))
        for host in self.model.hosts.values():
            host.attested = host.written_off = False
        self.compare()
        for name in HOSTS:
            if name != away:
                self.attest(name, self.journal(name, data))
                self.compare()
        self.play_words(list(self.model.claims)[-8:], then)

    @rule(data=st.data(), name=hosts, evacuate=st.booleans(), then=words)
    def write_off_or_come_back(self, data: st.DataObject, name: str, evacuate: bool, then: Words) -> None:
        """A host is written off; or, where it has not attested, it comes back."""
        host = self.model.hosts[name]
        if host.attested:
            assert self.play(self.cell.write_off(name, evacuate)).outcome is Outcome.OK
            host.attested, host.written_off, host.evacuated = False, True, evacuate
        else:
            self.attest(name, self.journal(name, data))
        self.play_words([one.id for one in self.model.claims.values() if one.host == name][-4:], then)

    def journal(self, name: str, data: st.DataObject) -> dict[str, str]:
        """What a host says of each of its claims."""
        return {one.id: data.draw(st.sampled_from(WORDS_OF_HOSTS)) for one in self.model.on(name)}

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        self.compare()


def test_claims_that_succeed_each_other_are_what_the_model_says(server: PrivateServer) -> None:
    class Machine(SuccessionMachine):
        def __init__(self) -> None:
            super().__init__(server)

    run_state_machine_as_test(Machine, settings=settings(phases=PHASES, max_examples=EXAMPLES))
