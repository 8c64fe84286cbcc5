"""Claims that succeed each other, and gangs, at play: each word is said to a cell and to the model of it, and compared.

For tests/property/test_succession_model.py, which chooses what is said.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from redsched.model import ClaimStatus, HostStatus, Why
from redsched.store import Answer, ClaimAnswer, Former, Giving, Outcome
from redsched.store.server import PrivateServer
from tests.support.cells import HOUR_S, call_of, make_due, member, open_host, report_of
from tests.support.compare_lives import Comparison
from tests.support.model_life import LEASED, Gang, Life, entry_of
from tests.support.model_succession import Successions
from tests.support.placements import held_claim
from tests.support.played import PlayedCell

HOSTS = ("h1", "h2", "h3")
ROOM = 1000
STALE = "1-a.1"

Words = Sequence[tuple[int, str]]
"""A word, and the number of the claim at hand that it is about."""


class LivesAtPlay(PlayedCell):
    """A cell with three hosts, and its model."""

    def __init__(self, server: PrivateServer) -> None:
        super().__init__(server)
        self.model = Successions(HOSTS)
        for name in HOSTS:
            self.play(open_host(self.cell, name, VCPU=ROOM, MEMORY_MB=ROOM))
        self.comparison = Comparison(self.cell, self.raw, self.model)

    def some(self, which: int) -> Life | None:
        """One of the latest claims."""
        latest = list(self.model.claims.values())[-8:]
        return latest[-1 - which % len(latest)] if latest else None

    def place(self, where: list[int], wanted: dict[str, int], is_gang: bool) -> list[str]:
        """Their ids; none where no host is open."""
        names = self.model.open_hosts()
        first, self.ids = self.ids + 1, self.ids + len(where)
        if not names:
            return []
        members = [
            member(f"c{number}", names[one % len(names)], **wanted) for number, one in enumerate(where, start=first)
        ]
        clock = self.play(self.cell.tick())
        answer = self.play(self.cell.claim(replace(call_of(clock, *members), is_gang=is_gang)))
        assert answer.outcome is Outcome.OK
        gang = members[0].id if is_gang and len(members) > 1 else ""
        for one, placed in zip(members, answer.placed, strict=True):
            life = Life(one.id, placed.host, placed.token, wanted, gang=gang)
            self.model.claims[one.id] = life
        if gang:
            self.model.gangs[gang] = Gang({one.id for one in members})
        return [one.id for one in members]

    def life(
        self,
        why: Why,
        where: int,
        by: bool,
        then: Words,
        further: list[Words],
    ) -> None:
        """A claim whose work runs, another in its place, and perhaps a third and fourth."""
        ids = self.place([where], {"VCPU": 1}, False)
        if not ids:
            return
        shelved = [(0, "shelve"), (0, "gone")] if why is Why.SHELVED else []
        self.play_words(ids, [(0, "arrive"), *shelved])
        self.place_anew(self.model.claims[ids[0]], why, where + 1, by, then)
        for number, last in enumerate(further, start=2):
            self.place_anew(list(self.model.claims.values())[-1], Why.MOVED, where + number, by, last)

    def place_anew(self, former: Life, why: Why, where: int, by: bool, then: Words) -> None:
        """`by`: with a deadline, where it is a move."""
        names = self.model.open_hosts()
        if former.is_local or not names:
            return
        self.ids += 1
        claim_id, name, by_s = f"c{self.ids}", names[where % len(names)], 3600 if by and why is Why.MOVED else 0
        answer = self.ask_target(claim_id, name, former, why, by_s)
        expected = self.model.may_succeed(former, why)
        assert answer.outcome == (expected or "OK")
        if expected:
            assert answer.next == (former.next or former.id if expected == "MOVING" else "")
            return
        life = Life(claim_id, name, answer.placed[0].token, {"VCPU": 1})
        self.model.place(life, former, why, "later" if by_s else "")
        self.compare()
        self.play_words([claim_id, former.id, former.origin or former.id], then)

    def ask_target(self, claim_id: str, name: str, former: Life, why: Why, by_s: int) -> ClaimAnswer:
        named = Former(former.id, former.host, former.token, why, by_s, former.gang)
        one = replace(member(claim_id, name), former=named)
        return self.play(self.cell.claim(call_of(self.play(self.cell.tick()), one)))

    def play_words(self, ids: list[str], then: Words) -> None:
        for number, word in then if ids else ():
            claim = self.model.claims[ids[number % len(ids)]]
            for one in ("accept", "confirm") if word == "arrive" else (word,):
                self.play_word(claim, one, number)
                self.compare()

    def play_word(self, claim: Life, word: str, number: int) -> None:
        """What is not said of one claim alone, or with more than its token, has a way of its own."""
        played: dict[str, Callable[[], None]] = {
            "resize": lambda: self.resize(claim, {"VCPU": number + 1}),
            "resized": lambda: self.resized(claim, number),
            "lapse": lambda: self.lapse(claim),
            "deadline": lambda: self.let_a_deadline_pass(claim),
            "work_off": lambda: self.work_off(number, number),
        }
        if word in played:
            played[word]()
        else:
            self.say_of(claim, word)

    def say_of(self, claim: Life, verb: str) -> None:
        """One word, with the claim's own token."""
        outcome = self.play(self.speak(verb, claim, claim.token)).outcome
        if verb == "succeed":
            assert outcome == self.model.succeed(claim)
        elif verb == "forget_shelved":
            assert outcome == self.model.forget_shelved(claim)
        else:
            assert outcome == self.model.say(verb, claim), (verb, claim.id)

    def speak(self, verb: str, claim: Life, token: str) -> Coroutine[Any, Any, Answer]:
        """The typed call of a word."""
        cell, where = self.cell, (claim.host, claim.id, token)
        calls: dict[str, Any] = {
            "accept": lambda: cell.accept(*where, HOUR_S),
            "confirm": lambda: cell.confirm(*where),
            "renew": lambda: cell.renew(*where, HOUR_S),
            "fail_by_host": lambda: cell.fail(*where, by_host=True),
            "fail": lambda: cell.fail(*where, by_host=False),
            "release": lambda: cell.release(*where, origin=claim.origin),
            "release_force": lambda: cell.release(*where, how=Giving.FORCE, origin=claim.origin),
            "release_whole": lambda: cell.release(*where, origin=claim.origin, whole=True),
            "release_unless_active": lambda: cell.release(*where, how=Giving.UNLESS_ACTIVE),
            "gone": lambda: cell.gone(*where, Why.RELEASED, {}),
            "shelve": lambda: cell.shelve(*where),
            "forget_shelved": lambda: cell.forget_shelved(claim.id, claim.origin),
            "succeed": lambda: cell.succeed(claim.id),
        }
        said: Coroutine[Any, Any, Answer] = calls[verb]()
        return said

    def resize(self, claim: Life, wanted: dict[str, int], token: str = "") -> None:
        before, said = claim.token, token or claim.token
        answer = self.play(self.cell.resize(claim.host, claim.id, said, wanted))
        assert answer.outcome == self.model.resize(claim, said, wanted, ROOM)
        if answer.outcome is Outcome.OK:
            claim.token = answer.facts[0]
            assert claim.token != before
        if answer.outcome in (Outcome.OK, Outcome.SAME):
            assert answer.facts == (claim.token, claim.state)

    def resized(self, claim: Life, number: int) -> None:
        """Its host has done so, could not, or says what cannot be."""
        has = ({"VCPU": 1}, {"VCPU": ROOM}, claim.wanted, claim.wanted)[number] or {"VCPU": 1}
        answer = self.play(self.cell.resized(claim.host, claim.id, claim.token, has))
        assert answer.outcome == self.model.resized(claim, has)

    def lapse(self, claim: Life) -> None:
        """A lease runs out, and all claims are offered to the sweep."""
        if claim.state in LEASED:
            self.play(make_due(self.raw, self.cell, claim.id))
            claim.due = True
        everyone = [(one.id, one.host) for one in self.model.claims.values()]
        assert self.play(self.cell.expire(everyone)) == self.model.expire()

    def let_a_deadline_pass(self, claim: Life) -> None:
        """That of a move: its chore is due then."""
        if claim.by and claim.state != "ended":
            self.play(self.raw.hset(self.cell.keys.claim(claim.id), "by_ms", 1))
            self.play(self.raw.zadd(self.cell.keys.chores, {claim.id: 1}))
            claim.by = "passed"

    def work_off(self, turn: int, only: int) -> None:
        """Schedulers do what is due, in any order, and perhaps die after the first."""
        for _ in range(3):
            due = self.play(self.cell.due_chores(self.play(self.cell.tick()).now_ms, 0, 100))
            shift = turn % len(due) if due else 0
            for claim_id in (due[shift:] + due[:shift])[: only or None]:
                self.do_chore(self.model.claims[claim_id])
                self.compare()

    def do_chore(self, claim: Life) -> None:
        """As a scheduler does it."""
        outcome, fields = "", set[str]()
        if claim.former or claim.origin or (claim.state == "ended" and claim.next):
            outcome = self.play(self.cell.succeed(claim.id)).outcome
            assert outcome == self.model.succeed(claim)
        if claim.gang and claim.state in ("ending", "ended"):
            done = self.play(self.cell.end_gang(claim.gang))
            assert done == self.model.end_gang(claim.gang)
            fields |= {"gang"} if done else set()
        if outcome != "ATTEST" or fields:
            self.play(self.cell.chore_done(claim.id, fields))
        claim.gang = "" if "gang" in fields else claim.gang

    def attest(self, name: str, words: Mapping[str, str]) -> None:
        """A host reports, tells its journal (a word for each claim), and is open for claims. What ended is dropped."""
        live = self.model.on(name)
        held = [entry for one in live if (entry := entry_of(one, words[one.id]))]
        over = [one for one in self.model.claims.values() if one.host == name and one.state == "ended"][-2:]
        held += [held_claim(one.id, one.token, ClaimStatus.ACTIVE, {"VCPU": 1}) for one in over]
        ended = [(one.id, one.token) for one in live if words[one.id] == "ended"]
        self.play(self.cell.report(report_of(name, VCPU=ROOM, MEMORY_MB=ROOM)))
        answer = self.play(self.cell.attest(name, "", None, held, ended))
        assert (answer.outcome, set(answer.drop)) == (Outcome.OK, {one.id for one in over})
        self.play(self.cell.set_status(name, HostStatus.ENABLED))
        self.model.attest(name, words)

    def compare(self) -> None:
        self.play(self.comparison.all())
