"""Auditing the ledgers of quotas: do they agree within themselves, and do they say what the cells hold?

A ledger lies outside every cell, so it and the claims are read at different instants. What is on its way is known by
its marks: a reservation by its lease, a claim that has changed by its chore. All else must agree, and is a suspicion
until it is seen again. A ledger that is to be counted anew says nothing yet, and is not looked at.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat

from redsched.model import Amounts, Claim, Quota
from redsched.pacing import Spread, paced
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.fields import quota_from
from redsched.scheduler.quota_settle import RESERVED_MS, ledger_id
from redsched.scheduler.taken import taken
from redsched.scheduler.views import Mend, Problem
from redsched.store import Answer, Kind, LedgerEntry, Ledgers, LedgerState, Outcome
from redsched.store.base import chunks

MOST_ENTRIES = 5000
"""Entries of one ledger that one script may look at: it holds the server while it does."""


@dataclass(slots=True)
class Held:
    """What the cells hold of a project, by the id of the ledger."""

    amounts: Spread[Amounts] = field(default_factory=Spread)
    unmarked: set[str] = field(default_factory=set)
    """Ids with a claim that does not know that a quota counts it."""

    def take(self, claim: Claim) -> None:
        """Add a claim that lives. A claim and its successor together take the larger of each class."""
        known_as = ledger_id(claim)
        now = Counter(taken(claim.amounts)) | Counter(self.amounts.get(known_as, {}))
        self.amounts[known_as] = dict(now)
        if not claim.quota:
            self.unmarked.add(known_as)


async def ledger_problems(cells: Cells, ledgers: Ledgers) -> list[Problem]:
    """What one look finds. Raises StoreUnavailable."""
    ids, quotas = await ledgers.all_ids(), await _declared(next(iter(cells)))
    if not (ids or quotas) or not all([(await cell.store.tick()).settled for cell in cells]):
        return []
    left_over = [one for one in sorted(ids.keys() - quotas.keys()) if await ledgers.remains(one, ids[one])]
    problems = [_problem(5, one, "key", "there", "gone with its quota", Mend.COUNT) for one in left_over]
    counted = await _counted(cells, ledgers, quotas)
    within = {one: await _within(ledgers, one, ids.get(one, ())) for one in counted}
    entries = {one: await ledgers.entries(one, ids.get(one, ())) for one in counted}
    held, on_their_way = await _held(cells, counted)
    for project, state in counted.items():
        answer = within[project]
        if answer is None or answer.outcome is Outcome.OK:
            now_ms = answer.now_ms if answer else 0
            problems += _faults(project, answer)
            problems += _limits(project, state, quotas[project])
            found = _entries(project, entries[project], held[project], now_ms)
            problems += [one async for known_as, one in found if known_as not in on_their_way]
    await on_their_way.let_go()
    for project in counted:
        await entries[project].let_go()
        await held[project].amounts.let_go()
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


async def _held(cells: Cells, projects: Collection[str]) -> tuple[dict[str, Held], Spread[bool]]:
    """By project; and the ids of which something is still to be told.

    Chores are read after the claims: who has told a ledger takes its chore out after that.
    """
    held, on_their_way = {project: Held() for project in projects}, Spread[bool]()
    for cell in cells if projects else ():
        async for living in cell.store.living_on(await cell.store.host_names()):
            async for claim in paced(living):
                if claim.project in held:
                    held[claim.project].take(claim)
        for some in chunks([one async for one in paced(await cell.store.chores())]):
            claims = await cell.store.read_claims(some)
            on_their_way.update((ledger_id(claim), True) for claim in claims.values())
    return held, on_their_way


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


async def _entries(
    project: str, entries: Mapping[str, LedgerEntry], held: Held, now_ms: int
) -> AsyncIterator[tuple[str, Problem]]:
    """Of the ledger beside the cells: the id of each, and what is wrong."""
    async for one, is_entry in paced(chain(zip(entries, repeat(True)), zip(held.amounts, repeat(False)))):
        if not is_entry and one in entries:
            continue
        entry, living = entries.get(one), held.amounts.get(one, {})
        if entry is not None and entry.state == "reserved":
            if entry.until_ms is not None and entry.until_ms + RESERVED_MS < now_ms:
                yield one, _problem(5, project, "lease", "long over", "settled", Mend.SETTLE, one)
            continue
        says = _text(entry.amounts) if entry is not None and entry.state == "held" else "nothing"
        should = _text(living) if living else "nothing"
        if says != should:
            yield one, _problem(2, project, "counted", says, should, Mend.SETTLE, one)
        elif one in held.unmarked:
            yield one, _problem(2, project, "mark of its claim", "none", "that a quota counts it", Mend.SETTLE, one)


def _text(amounts: Amounts) -> str:
    return " ".join(f"{name}={amount}" for name, amount in sorted(Counter(amounts).items()) if amount)[:200]


def _problem(
    invariant: int, project: str, what: str, found: str, should: str, mend: Mend, name: str = ""
) -> Problem:  # it lies in no cell
    return Problem(invariant, "", f"quota:{project} {name}".strip(), what, found, should, mend, f"{project}/{name}")
