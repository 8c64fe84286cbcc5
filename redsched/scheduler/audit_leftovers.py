"""Auditing what should not be there any more: claims, keys, deadlines and chores of what is gone. Invariant 5.

These are read one after the other, so each finding is a suspicion until it is seen again.
"""

from collections.abc import Iterator, Mapping

from redsched.model import HELD, LEASED, ClaimStatus, Why
from redsched.names import whole
from redsched.scheduler.audit_reading import Seen, is_unfinished, members_of
from redsched.scheduler.views import Mend, Problem
from redsched.store.fields import claim_from, placement_fields

Fields = Mapping[str, str]

RUNS = "its work may run: --repair ends it for good, and its host, should it come back, stops the work"
HOST_KEYS = ("claims", "facts", "inbox")


def leftover_problems(cell: str, seen: Seen) -> Iterator[Problem]:
    """All of them."""
    yield from _strays(cell, seen)
    yield from _of_gone_hosts(cell, seen)
    yield from _due(cell, seen)
    yield from _lost_chores(cell, seen)
    yield from _gangs(cell, seen)
    yield from _remembered(cell, seen)


def _strays(cell: str, seen: Seen) -> Iterator[Problem]:
    """Placements that the set of their host does not have."""
    for claim_id, fields in seen.claims():
        for one in placement_fields(fields):
            state, host = one["state"], one.get("host", "")
            if claim_id in seen.ids_on.get(host, ()):
                continue
            if host in seen.present:
                should = "among the claims of its host"
                yield Problem(5, cell, claim_id, "claim", f"{state} on {host}, not counted", should, Mend.HOST, host)
            else:
                advice = "" if state == ClaimStatus.CLAIMED else RUNS
                says = f"{state} on {host or 'no host'}"
                yield Problem(5, cell, claim_id, "claim", says, "on a host", Mend.GONE_HOST, host, advice)


def _of_gone_hosts(cell: str, seen: Seen) -> Iterator[Problem]:
    for kind in HOST_KEYS:
        for host in sorted(set(seen.keys.get(kind, ())).difference(seen.present)):
            taken_up = any(
                one.get("host") == host and one["state"] != ClaimStatus.CLAIMED
                for _, fields in seen.claims()
                for one in placement_fields(fields)
            )
            advice = RUNS if kind == "claims" and taken_up else ""
            yield Problem(5, cell, f"{kind}:{host}", "key", "there", "gone with its host", Mend.GONE_HOST, host, advice)
    for host in sorted(set(seen.listed).difference(seen.present)):
        yield Problem(5, cell, f"hosts {host}", "entry", "there", "gone with its host", Mend.GONE_HOST, host)
    for host in sorted(set(seen.present).difference(seen.listed)):
        yield Problem(5, cell, f"hosts {host}", "entry", "none", "that of a host", Mend.HOST, host)


def _due(cell: str, seen: Seen) -> Iterator[Problem]:
    for claim_id in sorted(seen.deadlines):
        fields = seen.claim(claim_id)
        if not any(one["state"] in LEASED for one in placement_fields(fields)):
            state = fields.get("state", "unknown")
            yield Problem(5, cell, claim_id, "deadline", f"of a claim {state}", "none", Mend.DUE, claim_id)
    for claim_id in sorted(seen.chores):
        if not seen.claim(claim_id):
            yield Problem(5, cell, f"chores {claim_id}", "chore", "of no claim", "none", Mend.DUE, claim_id)


def _lost_chores(cell: str, seen: Seen) -> Iterator[Problem]:
    """Of claims with a placement that is not wanted any more, or that are to be placed again."""
    for claim_id, fields in seen.claims():
        if claim_id not in seen.chores and _may_be(fields) and is_unfinished(claim_from(cell, claim_id, fields)):
            yield Problem(5, cell, f"chores {claim_id}", "chore", "none", "to be reconciled", Mend.DUE, claim_id)


def _may_be(fields: Fields) -> bool:
    """Most claims have one placement and were never closed: nothing can be left to do about them."""
    return "closed" in fields or "retry_root" in fields or any(name.startswith("placement.") for name in fields)


def _gangs(cell: str, seen: Seen) -> Iterator[Problem]:
    """Gangs that wait for the wrong number of members, and failed ones whose members no chore ends."""
    ended_by_chore = {seen.claim(claim_id).get("gang") for claim_id in seen.chores}
    for gang, fields in sorted(seen.gangs.items()):
        states = [seen.claim(claim_id).get("state") for claim_id in members_of(fields)]
        waiting = sum(state in LEASED for state in states)
        left = [state for state in states if state not in HELD]
        thing = f"gang:{gang}"
        if len(left) == len(states) or (waiting == 0 and "why" not in fields):
            yield Problem(5, cell, thing, "key", "there", "gone", Mend.GANG, gang)
        elif left:
            yield Problem(5, cell, thing, "members", f"{len(states)}", f"{len(states) - len(left)}", Mend.GANG, gang)
        elif whole(fields.get("waiting", ""), -1) != waiting:
            yield Problem(2, cell, thing, "waiting", fields.get("waiting", "")[:40], f"{waiting}", Mend.GANG, gang)
        elif "why" in fields and gang not in ended_by_chore:
            yield Problem(5, cell, thing, "failed gang", f"{len(states)} members", "ended", Mend.GANG, gang)


def _remembered(cell: str, seen: Seen) -> Iterator[Problem]:
    """Ended claims that are remembered without end: they are shelved, or something is still to be done about them."""
    for claim_id in sorted(seen.lasting):
        if seen.unheld[claim_id].get("why") == Why.SHELVED:
            if claim_id not in seen.shelved:
                yield Problem(5, cell, claim_id, "shelved claim", "not listed", "listed", Mend.DUE, claim_id)
        elif claim_id not in seen.chores:
            yield Problem(5, cell, claim_id, "ended claim", "kept", "forgotten", Mend.DUE, claim_id)
    for claim_id in sorted(seen.shelved):
        fields = seen.claim(claim_id)
        shelving = fields.get("state") == ClaimStatus.ENDED or fields.get("closed_why") == Why.SHELVED
        if not shelving or Why.SHELVED not in (fields.get("why"), fields.get("closed_why")):
            says = fields.get("state", "unknown")
            yield Problem(5, cell, f"shelved {claim_id}", "entry", says, "none", Mend.DUE, claim_id)
