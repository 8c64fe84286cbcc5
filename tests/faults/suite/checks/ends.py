"""What must hold once traffic has stopped and faults are healed: store, owners, machines, journals, replicas agree.

Each check yields errors as text, or nothing if there are none. The checks share no code with redsched.
"""

import shutil
import sqlite3
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.suite.callers.traffic import QUOTA
from tests.faults.suite.checks.ledger import Ledger
from tests.faults.suite.checks.rules import books
from tests.faults.suite.checks.view import Claims, Look, View, amounts_of, used_by
from tests.faults.suite.works import Works

Replica = Mapping[str, Any]
"""The columns of a scheduler process, as it reports them."""


@dataclass(frozen=True, slots=True)
class Journaled:
    """A claim in a journal's file."""

    token: str
    state: str
    is_running: bool


def settled(view: View, hosts: Collection[str]) -> Iterator[str]:
    """Check that all hosts of the cell have attested and are up, and that no claim is in transition."""
    if view.meta.get("settled") != "1":
        old_s = (view.now_ms - int(view.meta.get("began_ms", "0"))) / 1000
        jumped_s = int(view.meta.get("clock_shift_ms", "0")) / 1000
        # Time in which nothing could be written, on a machine that stands still, counts as a jump of the clock.
        yield f"the cell is not settled: its epoch is {old_s:.1f} s old, and its clock has jumped by {jumped_s:.1f} s"
    for host in hosts:
        if host not in view.hosts:
            yield f"host {host} is not there"
        elif not view.is_attested(host):
            yield f"host {host} has attested to {view.hosts[host].get('epoch')}, not to {view.epoch}"
        elif view.hosts[host].get("alive") != "1":
            yield f"host {host} is down"
    yield from (f"claim {one} is pending" for one, claim in view.claims.items() if claim.get("state") == "pending")
    for one in view.placements():
        if one.get("state") != "active":
            yield f"claim {one['id']} on {one.get('host')} is {one.get('state')}"


def left_over(view: View) -> Iterator[str]:
    """Check what may exist only while something is in progress: notifications, deadlines, reconciliations."""
    yield from (f"{count} notifications lie in the inbox of {host}" for host, count in view.inboxes.items())
    yield from (f"claim {claim_id} has a deadline" for claim_id in view.deadlines)
    for claim_id, due_ms in view.others.get("reconcile", {}).items():
        left_s = (float(due_ms) - view.now_ms) / 1000
        when = f"put off for {left_s:.1f} s" if left_s > 0 else f"due for {-left_s:.1f} s"
        yield f"a reconciliation waits for {claim_id}, {when}"


def once(look: Look) -> Iterator[str]:
    """Check that no claim that an owner knows is in more than one cell."""
    cells_of = defaultdict[str, list[str]](list)
    for cell, view in look.items():
        for claim_id in view.claims:
            cells_of[claim_id].append(cell)
    for claim_id, cells in cells_of.items():
        if len(cells) > 1:
            yield f"claim {claim_id} is in {' and in '.join(cells)}"


def machines_agree(claims: Claims, works: Works) -> Iterator[str]:
    """Check that the work that really runs equals the active claims of the store, in amounts, each on one host.

    The tokens are equal too, unless a claim was resized and resized back before its host read either: its hook had
    nothing to do, and knows an earlier token.
    """
    active = {(one["host"], one["id"], one["placed"]): one for one in claims.placements()}
    running = works.running
    for host, claim_id, _ in sorted(running.keys() - active.keys()):
        yield f"work of {claim_id} runs on {host}, and no claim says so"
    for host, claim_id, _ in sorted(active.keys() - running.keys()):
        yield f"claim {claim_id} is active on {host}, and its work does not run"
    for key in sorted(active.keys() & running.keys()):
        claim, work, place = active[key], running[key], key[:2]
        own = {slot: amount for slot, amount in amounts_of(claim).items() if amount and not slot.startswith("pool:")}
        if own != {slot: amount for slot, amount in work.slots.items() if amount}:
            yield f"{place} holds {own}, its work has {dict(work.slots)}"
        elif _age(claim["token"]) < _age(work.token):
            yield f"{place} has the token {claim['token']}, its work runs under {work.token}"
    yield from (f"{claim_id} runs on more than one host" for claim_id in works.twice())


def _age(token: str) -> tuple[int, str, int]:
    epoch, _, seq = token.rpartition(".")
    at_ms, _, name = epoch.partition("-")
    return int(at_ms), name, int(seq)


def journals_agree(claims: Claims, journals: Mapping[tuple[str, str], Journaled]) -> Iterator[str]:
    """Check that journals hold the claims of the store, as running, and no others."""
    active = {(one["host"], one["id"]): one["token"] for one in claims.placements()}
    for host, claim_id in sorted(journals.keys() - active.keys()):
        yield f"the journal of {host} holds {claim_id}, the store does not"
    for host, claim_id in sorted(active.keys() - journals.keys()):
        yield f"claim {claim_id} is active on {host}, whose journal does not hold it"
    for place in sorted(active.keys() & journals.keys()):
        entry = journals[place]
        if (entry.token, entry.state, entry.is_running) != (active[place], "active", True):
            yield f"{place} is active under {active[place]}, in the journal {entry}"


def owners_agree(claims: Claims, ledger: Ledger) -> Iterator[str]:
    """Check that no claim exists that no owner knows, or that its owner has released."""
    there = claims.claims
    left = {one for one, claim in there.items() if claim.get("consumer") in ledger.orphans}
    left |= (there.keys() | claims.shelved) & ledger.silenced
    for claim_id in sorted(left - ledger.owned.keys() - ledger.open_ids()):
        yield f"claim {claim_id} is left by a caller who was killed"
    owned = ledger.owned.keys() | ledger.shelved.keys() | ledger.open_ids() | left
    for claim_id in sorted((there.keys() | claims.shelved) - owned):
        said = ledger.given.get(claim_id) or ("refused" if claim_id in ledger.refused else "never asked for")
        yield f"claim {claim_id} is there, and to its owner it is {said}"


def quota_agrees(claims: Claims, quotas: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Check that a quota records what its claims use, and that cells use at most the limit. `quotas`: hash by cell."""
    really: Counter[str] = Counter()
    for claim_id, claim in claims.claims.items():
        if claim.get("project") == QUOTA.project:
            really += used_by(claim_id, claim)
    for word in ("claims", "VCPU"):
        used = _sum(f"used.{word}", quotas)
        if used != really[word]:
            yield f"the quota of {QUOTA.project} says {used} {word}, its claims are {really[word]}"
        shares = _sum(f"share.{word}", quotas)
        if shares > QUOTA.limits[word]:
            yield f"cells may use {shares} {word} of the quota of {QUOTA.project} together, more than its limit"


def _sum(field: str, quotas: Mapping[str, Mapping[str, str]]) -> int:
    return sum(int(one.get(field, "0")) for one in quotas.values())


def replica_agrees(name: str, replica: Replica, view: View) -> Iterator[str]:
    """Check that a scheduler's columns agree with the store about every host."""
    if "problem" in replica:
        yield f"{name} cannot catch up: {replica['problem']}"
        return
    if replica["epoch"] != view.epoch:
        yield f"{name} is in epoch {replica['epoch']}, the store in {view.epoch}"
    if replica["hosts"].keys() != view.hosts.keys():
        yield f"{name} and the store differ by hosts {sorted(replica['hosts'].keys() ^ view.hosts.keys())}"
    for host in replica["hosts"].keys() & view.hosts.keys():
        seen, stored = _as_seen(replica["hosts"][host]), _as_stored(view, host)
        for word in sorted(seen.keys() | stored.keys()):
            if seen.get(word) != stored.get(word):
                yield f"{name} has {host} {word} {seen.get(word)}, the store {stored.get(word)}"
    yield from _declared_agree(name, replica["declared"], view)


def _declared_agree(name: str, seen: Mapping[str, Any], view: View) -> Iterator[str]:
    """Compare the members of groups by place, and the claimed amounts of each slot of shared pools."""
    for group, fields in view.groups.items():
        mine = seen.get(f"server-group {group}", {})
        counts = {word: int(n) for word, n in fields.items() if word.startswith("count.") or word == "members"}
        seen_counts = {word: n for word, n in mine.items() if word.startswith("count.") or word == "members"}
        if Counter(seen_counts) != Counter(counts):  # a missing field is 0
            yield f"{name} has group {group} {mine}, the store {counts}"
    for pool, fields in view.pools.items():
        mine = seen.get(f"pool {pool}", {})
        for word, claimed in fields.items():
            slot = word.removeprefix("claimed.")
            if slot != word and mine.get(f"slot.{slot}", {}).get("claimed", 0) != int(claimed):
                yield f"{name} has pool {pool} {mine}, the store {claimed} {slot} claimed"


_AMOUNTS = ("capacity.", "claimed.", "external.")
_COUNTS = ("version", "claims", "starting")


def _as_seen(fields: Mapping[str, Any]) -> dict[str, Any]:
    seen = {word: fields[word] for word in (*_COUNTS, "alive", "attested", "zone")}
    return seen | {word: n for word, n in fields.items() if word.startswith(_AMOUNTS) and n}


def _as_stored(view: View, host: str) -> dict[str, Any]:
    fields = view.hosts[host]
    stored: dict[str, Any] = {word: int(fields.get(word, "0")) for word in _COUNTS}
    stored |= {"alive": fields.get("alive") == "1", "attested": view.is_attested(host), "zone": fields.get("zone")}
    return stored | {word: int(n) for word, n in fields.items() if word.startswith(_AMOUNTS) and n != "0"}


def nothing_is_left(view: View) -> Iterator[str]:
    """Check that after all releases a cell has no claim, no count and no notification."""
    yield from books(view)
    yield from left_over(view)
    yield from (f"ended claim {claim_id} is remembered without end" for claim_id in view.kept)
    yield from (f"key {key} is left" for key in view.others if key.startswith(("gang:", "shelved", "draining")))
    yield from (f"claim {claim_id} is left, shelved" for claim_id in view.shelved)
    yield from (f"claim {claim_id} is left, {claim.get('state')}" for claim_id, claim in view.claims.items())
    for what, objects in (("host", view.hosts), ("pool", view.pools), ("group", view.groups)):
        for name, fields in objects.items():
            for word, value in fields.items():
                is_count = word.startswith(("claimed.", "count.")) or word in ("claims", "starting", "members")
                if is_count and value != "0":
                    yield f"{what} {name} has {word} {value}"


def nothing_runs(works: Works, journals: Mapping[tuple[str, str], Journaled]) -> Iterator[str]:
    """Check that then no work runs and journals are empty."""
    yield from (f"work of {claim_id} is left on {host}" for host, claim_id, _ in works.running)
    yield from (f"the journal of {host} still holds {claim_id}" for host, claim_id in journals)


def read_journals(files: Collection[Path]) -> dict[tuple[str, str], Journaled]:
    """Return the placements in the journals' files, by host and claim id.

    Reads copies, because an agent locks its journal.
    """
    found: dict[tuple[str, str], Journaled] = {}
    for path in files:
        with tempfile.TemporaryDirectory() as folder:
            for one in path.parent.glob(f"{path.name}*"):
                shutil.copy(one, folder)
            connection = sqlite3.connect(Path(folder) / path.name)
            try:
                rows = connection.execute("SELECT host, id, token, state, is_running FROM placement").fetchall()
            finally:
                connection.close()
        found |= {(host, one): Journaled(token, state, bool(runs)) for host, one, token, state, runs in rows}
    return found
