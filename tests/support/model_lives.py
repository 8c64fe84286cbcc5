"""A plain model of claims through their whole lives, without Redis: hosts heard or not, words, resizes, gangs.

Room is no matter here: hosts have enough of it. What becomes of claims that succeed each other is in
tests/support/model_succession.py. Written from docs/architecture.md and the scripts' headers.
"""

from collections import Counter
from collections.abc import Mapping

from tests.support.model_life import BY_OWNER, LEASED, OVER, Gang, Life, Place


class Lives:
    """Claims and hosts of a cell."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        self.hosts = {name: Place() for name in hosts}
        self.claims: dict[str, Life] = {}
        self.gangs: dict[str, Gang] = {}

    # What is true

    def on(self, host: str) -> list[Life]:
        """The claims on a host."""
        return [one for one in self.claims.values() if one.host == host and one.state != "ended"]

    def sums(self, host: str) -> dict[str, int]:
        """What a host's hash counts: claims, starting, and claimed amounts that are not 0."""
        counts = Counter(claims=0, starting=0)
        for one in self.on(host):
            counts["claims"] += 1
            counts["starting"] += one.state in LEASED
            for slot, amount in one.amounts.items():
                counts[f"claimed.{slot}"] += amount
        return dict(counts)

    def waiting(self, gang: Gang) -> int:
        """How many members of a gang are not active yet."""
        return sum(self.claims[one].state in LEASED for one in gang.members)

    def open_hosts(self) -> list[str]:
        """Those that take claims."""
        return sorted(name for name, host in self.hosts.items() if host.attested)

    # Words on a claim

    def say(self, verb: str, claim: Life) -> str:
        """The outcome of a verb with the claim's own token, carried out."""
        if not self.hosts[claim.host].can_be_told:
            return "ATTEST"
        outcome: str = getattr(self, f"_{verb}")(claim)
        return outcome

    def _accept(self, claim: Life) -> str:
        if claim.state != "claimed":
            return {"ended": "GONE", "ending": "ENDING"}.get(claim.state, "SAME")
        claim.state, claim.hint, claim.due = "starting", "", False
        return "OK"

    def _confirm(self, claim: Life) -> str:
        if claim.state not in LEASED:
            return {"ended": "GONE", "ending": "ENDING"}.get(claim.state, "SAME")
        gang = self.gangs.get(claim.gang)
        if gang and gang.why:
            return self._begin_ending(claim, "failed")
        self._becomes_active(claim)
        return "OK"

    def _becomes_active(self, claim: Life) -> None:
        claim.state, claim.hint, claim.due = "active", "", False
        claim.arrived = bool(claim.former)
        gang = self.gangs.get(claim.gang)
        if gang and not gang.why and not self.waiting(gang):
            del self.gangs[claim.gang]

    def _renew(self, claim: Life) -> str:
        if claim.state not in LEASED:
            return {"ended": "GONE", "ending": "ENDING"}.get(claim.state, "SAME")
        claim.due = False
        return "OK"

    def _fail_by_host(self, claim: Life) -> str:
        if claim.state == "ended":
            return "SAME" if claim.why == "failed" else "GONE"
        return self._end(claim, "failed")

    def _fail(self, claim: Life) -> str:
        if claim.state == "ended":
            return "SAME" if claim.why == "failed" else "GONE"
        claim.final = claim.final or not (claim.next or claim.why in ("released", "shelved"))
        return self.give_back(claim, "failed")

    def _release(self, claim: Life) -> str:
        outcome = "SAME" if claim.state == "ended" else self.give_back(claim, "released")
        if (claim.why == "void" and not claim.next) or (claim.why == "shelved" and claim.state == "ending"):
            claim.why = "released"  # its owner says why; and nobody wants back what is being shelved
        return outcome

    def _release_unless_active(self, claim: Life) -> str:
        return "ACTIVE" if claim.state == "active" else self._release(claim)

    def _release_force(self, claim: Life) -> str:
        return self._release(claim) if claim.state == "ended" else self._end(claim, "released")

    def _gone(self, claim: Life) -> str:
        if claim.state == "ended":
            return "SAME"
        return self._end(claim, claim.why if claim.state == "ending" else "released")

    def _shelve(self, claim: Life) -> str:
        if claim.state in OVER:
            return {"ending": "ENDING", "ended": "SAME"}[claim.state] if claim.why == "shelved" else "GONE"
        return "MOVING" if claim.former else self.give_back(claim, "shelved")

    def forget_shelved(self, claim: Life) -> str:
        """What is shelved is not wanted any more."""
        if claim.why != "shelved":
            return "SAME"
        claim.why = "released"
        return "ENDING" if claim.state == "ending" else "OK"

    def resize(self, claim: Life, token: str, amounts: dict[str, int], most: int) -> str:
        """Other amounts, each of which has room up to `most`. The caller puts the new token in."""
        if not self.hosts[claim.host].can_be_told:
            return "ATTEST"
        same = amounts == (claim.wanted or claim.amounts)
        if claim.token != token and not (same and claim.resized_from == token):
            return "STALE"
        if claim.state in OVER:
            return {"ending": "ENDING", "ended": "GONE"}[claim.state]
        if same:
            return "SAME"
        if claim.next or claim.former:
            return "MOVING"
        if any(amount > most for amount in amounts.values()):
            return "FULL"
        claim.resized_from = token
        if claim.state == "claimed":
            claim.amounts, claim.wanted, claim.hint = amounts, {}, "claim"
        else:
            claim.amounts, claim.wanted, claim.hint = _larger(claim.amounts, amounts), amounts, "resize"
        return "OK"

    def resized(self, claim: Life, amounts: dict[str, int]) -> str:
        """The host's word on it."""
        if not self.hosts[claim.host].can_be_told:
            return "ATTEST"
        if claim.state in OVER:
            return {"ending": "ENDING", "ended": "GONE"}[claim.state]
        if not claim.wanted:
            return "SAME"
        if _larger(claim.amounts, amounts) != claim.amounts:
            return "CONFLICT"
        claim.amounts, claim.wanted, claim.hint = amounts, {}, ""
        return "OK"

    def local(self, host: str, claim_id: str, token: str, amounts: dict[str, int]) -> str:
        """A host's word about work of its own. The caller puts the new token in."""
        claim = self.claims.get(claim_id)
        if not self.hosts[host].can_be_told:
            return "ATTEST"
        if claim and (not claim.is_local or (claim.state != "ended" and claim.host != host)):
            return "CONFLICT"
        if claim and claim.state == "ending":
            return "ENDING"
        if claim and claim.state == "active" and not claim.wanted and claim.amounts == amounts:
            return "SAME"
        if claim and claim.token != token:
            return "STALE"
        self.claims[claim_id] = Life(claim_id, host, "", amounts, "active", hint="", is_local=True)
        return "OK"

    def expire(self) -> int:
        """End what is due; how many."""
        told = [one for one in self.claims.values() if self.hosts[one.host].can_be_told]
        due = [one for one in told if one.due or (one.state == "ending" and not self.hosts[one.host].is_awaited)]
        for one in due:
            ends = one.state == "claimed" or not self.hosts[one.host].is_awaited
            (self._end if ends else self._begin_ending)(one, one.why or "expired")
        return len(due)

    # How a claim ends

    def give_back(self, claim: Life, why: str) -> str:
        """What no host has taken up, or none is waited for, ends; the rest is asked back, once."""
        if claim.state == "claimed" or not self.hosts[claim.host].is_awaited:
            return self._end(claim, why)
        return "ENDING" if claim.state == "ending" else self._begin_ending(claim, why)

    def _begin_ending(self, claim: Life, why: str) -> str:
        claim.state, claim.why, claim.hint, claim.due = "ending", why, "end", False
        self._leave_gang(claim, why)
        return "ENDING"

    def _end(self, claim: Life, why: str) -> str:
        if claim.state == "ending" and claim.why == "shelved" and why != "released":
            why = "shelved"
        claim.state, claim.why, claim.hint, claim.due = "ended", why, "", False
        claim.amounts, claim.wanted, claim.resized_from = {}, {}, ""
        self._leave_gang(claim, why)
        return "OK"

    def _leave_gang(self, claim: Life, why: str) -> None:
        """The first that does not end by its owner takes the others with it, where the gang is waited for."""
        gang = self.gangs.get(claim.gang)
        if gang is None or claim.id not in gang.members:
            claim.gang = claim.gang if gang and gang.why else ""
            return
        gang.members.discard(claim.id)
        ends_all = bool(gang.members) and not gang.why and why not in BY_OWNER
        claim.fell = ends_all or (bool(gang.why) and why not in BY_OWNER)
        if ends_all:
            gang.why = why
        elif not gang.members or not (gang.why or self.waiting(gang)):
            del self.gangs[claim.gang]
        claim.gang = claim.gang if ends_all else ""

    def end_gang(self, gang_id: str) -> bool:
        """Give all that is left of a gang back; whether each could be."""
        gang = self.gangs.get(gang_id)
        members = sorted(gang.members) if gang else []
        return "ATTEST" not in [self.say("fail", self.claims[one]) for one in members]

    # Words of and on a host

    def attest(self, name: str, journal: Mapping[str, str]) -> None:
        """A host tells what it has: a word for each of its claims (WORDS_OF_HOSTS)."""
        host = self.hosts[name]
        host.attested, host.written_off, host.evacuated = True, False, False
        words = [(claim, journal.get(claim.id, "true")) for claim in self.on(name)]
        # What is to be waited for again first: else a gang could come up by what another member says.
        for claim, word in sorted(words, key=lambda one: one[1] != "lost"):
            self._merge(claim, word)

    def _merge(self, claim: Life, word: str) -> None:
        claim.due = False
        taken_up = claim.state in ("starting", "active")
        if word == "ended" or (word == "ending" and claim.state != "ending"):
            # Why, a journal does not know: mostly its owner has released it, so it does not end its gang.
            self._leave_gang(claim, "released")
            end = self._end if word == "ended" else self._begin_ending
            end(claim, claim.why or "void")
        elif word == "further" and claim.state in LEASED:
            self._becomes_active(claim)
        elif word == "lost" and taken_up:
            claim.state, claim.hint, claim.arrived = "claimed", "claim", False
        elif claim.state in ("claimed", "ending"):
            claim.hint = "claim" if claim.state == "claimed" else "end"
        else:
            claim.hint = ""


def _larger(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {slot: max(one.get(slot, 0), other.get(slot, 0)) for slot in {**one, **other}}
