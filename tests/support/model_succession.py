"""A plain model of claims that succeed each other, as docs/architecture.md has it ("Succession").

Built on the lives of single claims, tests/support/model_lives.py.
"""

from tests.support.model_life import OVER, Life
from tests.support.model_lives import Lives


class Successions(Lives):
    """Who may succeed whom, and what becomes of both."""

    def may_succeed(self, former: Life, why: str) -> str:
        """What a claim to succeed another one is answered; '' where nothing stands against it."""
        if why != "shelved" and not self.hosts[former.host].can_be_told:
            return "ATTEST"
        if former.next or former.former:
            return "MOVING"
        failed = why == "failed" and former.why in ("failed", "expired")
        nothing = former.fell and bool(former.origin)
        there = former.why == "shelved" and former.state == "ended"
        if not nothing and (there if why == "shelved" else former.state not in OVER or failed):
            return "GANG" if former.fell or former.gang in self.gangs else ""
        return "GONE"

    def place(self, claim: Life, former: Life, why: str, by: str) -> None:
        """A claim that is to succeed another."""
        claim.former, claim.former_why, claim.by = former.id, why, by
        claim.origin, former.next, former.final = former.origin or former.id, claim.id, False
        self.claims[claim.id] = claim

    def say(self, verb: str, claim: Life) -> str:
        """As of any claim. What its owner releases may be all that goes by his id."""
        gives_up = _is_about_all(verb, claim)
        outcome = super().say(verb, claim)
        if gives_up and outcome != "ATTEST":
            self._give_up_all(claim)
        return outcome

    def forget_shelved(self, claim: Life) -> str:
        """As of any claim, and its owner gives up all that goes by his id."""
        outcome = super().forget_shelved(claim)
        if outcome != "SAME":
            self._give_up_all(claim)
        return outcome

    def _give_up_all(self, claim: Life) -> None:
        root = self.claims[claim.origin or claim.id]
        if root is not claim and not (root.state in OVER and root.why == "shelved"):
            root.final = True

    def _release_whole(self, claim: Life) -> str:
        return self._release(claim)

    def pair(self, claim: Life) -> tuple[Life, Life]:
        """The target and the former that a claim is one of; twice the same for one without a succession."""
        other = self.claims[claim.former or claim.next or claim.origin or claim.id]
        return (other, claim) if claim.next and not claim.former else (claim, other)

    def succeed(self, claim: Life) -> str:
        """Do what is due; the outcome."""
        target, former = self.pair(claim)
        if any(one.state != "ended" and not self.hosts[one.host].can_be_told for one in (target, former)):
            return "ATTEST"
        if target is former:
            return "SAME"
        root = self.claims[target.origin or former.id]
        for one in (target, former):
            if one.state not in OVER and (root.final if one is root else _is_gone(root)):
                self._back(one, "released")  # its owner has given up the whole
                return "OK"
        if target.former != former.id:
            return self._afterwards(target, former)
        if target.state == "ended":
            return self._without_target(target, former)
        given_up = _is_gone(former) or (former.why == "shelved" and target.former_why != "shelved")
        if former.state in OVER and (given_up or former.next not in ("", target.id)):
            self._back(target, "released" if given_up else "moved")
            return "OK"
        stands = target.former_why == "failed" or target.state == "active" or target.arrived
        if stands or (former.state in OVER and former.why not in ("shelved", "void")):
            self._back(former, target.former_why)
            self._point(target, former)
            self._close(target)
            return "OK"
        if target.by == "passed" and former.state not in OVER:
            self._back(target, "expired")
            return "OK"
        return "EARLY"

    def _without_target(self, target: Life, former: Life) -> str:
        """It ended first. Who released it after it was active meant the whole."""
        has_other = former.state in OVER and former.next not in ("", target.id)
        if target.former_why == "failed" and not has_other:
            self._back(former, "failed")
            self._point(target, former)
        elif target.arrived and target.why == "released" and not has_other:
            self._back(former, "released")
            self._point(target, former)
        else:
            target.fell = True
            former.next = "" if former.next == target.id else former.next
        self._close(target)
        return "OK"

    def _afterwards(self, target: Life, former: Life) -> str:
        left = former.next == target.id and (former.state not in OVER or former.why == "shelved")
        if target.state == "ended" and left:
            former.next = ""
            return "OK"
        return "SAME"

    def _back(self, claim: Life, why: str) -> None:
        if claim.state not in OVER:
            self.give_back(claim, why)

    def _point(self, target: Life, former: Life) -> None:
        former.next = target.id
        former.why = "moved" if former.why == "shelved" else former.why
        self.claims[target.origin].next = target.id

    def _close(self, target: Life) -> None:
        target.former = target.former_why = target.by = ""
        target.arrived = False

    # What must hold whatever has happened

    def needs_chore(self, claim: Life) -> bool:
        """Whether something is left to be done about it that nothing else would bring about."""
        target, former = self.pair(claim)
        if claim.state == "ended" and claim.gang:
            return True
        if not claim.former:
            return False
        if target.state == "ending":
            # Its end, and that of a former one that is ending too, will be chores.
            return former.state not in OVER and (target.arrived or target.former_why == "failed")
        waits = former.why == "void" or former.why == target.former_why == "shelved"
        over, has_deadline = former.state == "ended" and not waits, bool(claim.by) and former.state not in OVER
        return over or target.state in ("active", "ended") or target.former_why == "failed" or has_deadline

    def lives_on(self, claim_id: str) -> bool:
        """Whether an owner's id that points to this claim is to be kept."""
        one = self.claims[claim_id]
        return one.state != "ended" or one.why == "shelved"

    def lines(self) -> dict[str, list[Life]]:
        """By their owner's id, the claims that hold something and have not been asked back."""
        found: dict[str, list[Life]] = {}
        for one in self.claims.values():
            if one.state not in OVER:
                found.setdefault(one.origin or one.id, []).append(one)
        return found


def _is_about_all(verb: str, claim: Life) -> bool:
    """By that id itself; or the claim is what goes by it now, and not over for another reason."""
    if verb not in ("release", "release_force"):
        return verb == "release_whole"
    goes_on = claim.former and claim.former_why != "failed" and claim.state != "active" and not claim.arrived
    is_shelved = claim.why == "shelved" and claim.state == "ending"
    unexplained = claim.why == "void" and not claim.next
    is_over = claim.state in OVER and not (claim.why == "released" or is_shelved or unexplained)
    return not (goes_on or (claim.fell and not claim.former) or is_over)


def _is_gone(claim: Life) -> bool:
    return claim.state in OVER and (claim.why == "released" or claim.final)
