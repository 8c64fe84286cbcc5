"""Auditing the ledgers of quotas: do they agree within themselves, and do they say what the cells hold?

A ledger lies outside every cell, so it and the claims are read at different instants. What is on its way is known by
its marks: a reservation by its lease, a claim that has changed by its chore. All else must agree, and is a suspicion
until it is seen again. A ledger that is to be counted anew says nothing yet, and is not looked at.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from redsched.model import Amounts, Claim, Quota
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.fields import quota_from
from redsched.scheduler.quota_settle import RESERVED_MS, ledger_id
from redsched.scheduler.taken import taken_together
from redsched.scheduler.views import Mend, Problem
from redsched.store import Answer, Kind, LedgerEntry, Ledgers, LedgerState, Outcome

MOST_ENTRIES = 5000
"""Entries of one ledger that one script may look at: it holds the server while it does."""

Ids = dict[str, set[str]]
"""The ids that a ledger may know, by project."""


@dataclass(slots=True)
class Held:
    """What the cells hold of some projects. `claims` are those that live, by project and the id of the ledger."""

    claims: dict[str, dict[str, list[Claim]]]
    on_their_way: set[str] = field(default_factory=set)
    """Ids of which something is still to be told."""


async def ledger_problems(cells: Cells, ledgers: Ledgers) -> list[Problem]:
    """What one look finds. Raises StoreUnavailable."""
    ids, quotas = await ledgers.all_ids(), await _declared(next(iter(cells)))
    if not (ids or quotas) or not all([(await cell.store.tick()).settled for cell in cells]):
        return []
    left_over = [one for one in sorted(ids.keys() - quotas.keys()) if await ledgers.remains(one, ids[one])]
    problems = [_problem(5, one, "key", "there", "gone with its quota", Mend.COUNT) for one in left_over]
    counted = await _counted(cells, ledgers, quotas)
    within = {one: await _within(ledgers, one, ids.get(one, set())) for one in counted}
    entries = {one: await ledgers.entries(one, ids.get(one, set())) for one in counted}
    held = await _held(cells, counted)
    for project, state in counted.items():
        answer = within[project]
        if answer is None or answer.outcome is Outcome.OK:
            now_ms = answer.now_ms if answer else 0
            problems += _faults(project, answer)
            problems += _limits(project, state, quotas[project])
            problems += _entries(project, entries[project], held, now_ms)
    return problems


async def _declared(first: Cell) -> dict[str, Quota]:
    """The quotas of the first cell: what that one has counts."""
    hashes = await first.store.read_things(Kind.QUOTA, await first.store.declared_names(Kind.QUOTA))
    quotas = {project: quota_from(project, fields) for project, fields in hashes.items()}
    return {project: quota for project, quota in quotas.items() if quota}


async def _counted(cells: Cells, ledgers: Ledgers, projects: Collection[str]) -> dict[str, LedgerState]:
    """The ledgers of these that have been counted in the present epochs of all cells."""
    epochs = {cell.name: (await cell.store.tick()).epoch for cell in cells}
    states = await ledgers.read(sorted(projects))
    return {
        project: state
        for project, state in states.items()
        if state.counted_in and all(state.epochs.get(cell) == epoch for cell, epoch in epochs.items())
    }


async def _within(ledgers: Ledgers, project: str, ids: Collection[str]) -> Answer | None:
    """What a ledger says of itself; None where it is too large for one script."""
    return await ledgers.mend(project, ids, write=False) if len(ids) <= MOST_ENTRIES else None


async def _held(cells: Cells, projects: Collection[str]) -> Held:
    """Chores are read after the claims: who has told a ledger takes its chore out after that."""
    held = Held({project: {} for project in projects})
    for cell in cells if projects else ():
        async for living in cell.store.living_on(await cell.store.host_names()):
            for claim in living:
                if claim.project in held.claims:
                    held.claims[claim.project].setdefault(ledger_id(claim), []).append(claim)
        chores = await cell.store.read_claims(await cell.store.chores())
        held.on_their_way.update(ledger_id(claim) for claim in chores.values())
    return held


def _faults(project: str, answer: Answer | None) -> Iterator[Problem]:
    """Of the ledger within itself."""
    facts = answer.facts if answer else ()
    for first in range(0, len(facts), 4):
        kind, name, found, should = facts[first : first + 4]
        number = 2 if kind == "used" else 5
        yield _problem(number, project, kind, found[:40], should, Mend.LEDGER, name)


def _limits(project: str, state: LedgerState, quota: Quota) -> Iterator[Problem]:
    if dict(state.limits) != dict(quota.limits):
        yield _problem(2, project, "limits", _text(state.limits), _text(quota.limits), Mend.COUNT)


def _entries(project: str, entries: Mapping[str, LedgerEntry], held: Held, now_ms: int) -> Iterator[Problem]:
    """Of the ledger beside the cells."""
    claims = held.claims[project]
    for one in sorted((entries.keys() | claims.keys()) - held.on_their_way):
        entry, living = entries.get(one), claims.get(one, [])
        if entry is not None and entry.state == "reserved":
            if entry.until_ms is not None and entry.until_ms + RESERVED_MS < now_ms:
                yield _problem(5, project, "lease", "long over", "settled", Mend.SETTLE, one)
            continue
        says = _text(entry.amounts) if entry is not None and entry.state == "held" else "nothing"
        should = _text(taken_together(living)) if living else "nothing"
        if says != should:
            yield _problem(2, project, "counted", says, should, Mend.SETTLE, one)
        elif not all(claim.quota for claim in living):
            yield _problem(2, project, "mark of its claim", "none", "that a quota counts it", Mend.SETTLE, one)


def _text(amounts: Amounts) -> str:
    return " ".join(f"{name}={amount}" for name, amount in sorted(Counter(amounts).items()) if amount)[:200]


def _problem(
    invariant: int, project: str, what: str, found: str, should: str, mend: Mend, name: str = ""
) -> Problem:  # it lies in no cell
    return Problem(invariant, "", f"quota:{project} {name}".strip(), what, found, should, mend, f"{project}/{name}")
