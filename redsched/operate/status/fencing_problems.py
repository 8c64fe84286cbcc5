"""What the fencing of hosts that are down is at: commands that run, commands that failed, and limits that forbid it."""

from collections.abc import Iterator, Mapping, Sequence

from redsched.model.records.status import StatusProblem
from redsched.operate.status.facts import CellFacts
from redsched.store.commands.fencing import FencingNote, Held, HeldNote
from redsched.wording import MAX_NAMED, counted, duration, named

HELD_MS = 15_000
"""A scheduler notes every few seconds that the limits hold: an older note is of another time."""


def fencing_problems(cell: str, facts: CellFacts) -> Iterator[StatusProblem]:
    """Yield what is known of the fencing of hosts that are down now."""
    notes = facts.fence_notes
    yield from _running(cell, facts, {name: one for name, one in notes.items() if one.is_running})
    yield from _failed(cell, facts, {name: one for name, one in notes.items() if not one.is_running})
    held = facts.fencing.held
    if held is not None and facts.down and held.at_ms + HELD_MS > facts.now_ms:
        yield _held(cell, facts, held)


def fencing_advice(facts: CellFacts, fenced: Sequence[str], of: int) -> str:
    """Return when a scheduler fences these hosts, of so many that are down; '' if none does, or there are none."""
    after_s = max((one.fences_after_s for one in facts.schedulers), default=0)
    if not after_s or not fenced:
        return ""
    which = named(fenced) if of > 1 else "it"
    is_fenced = f"{'is' if len(fenced) == 1 else 'are'} fenced"
    return f"; {which} {is_fenced} once down for {duration(after_s * 1000)}"


def _running(cell: str, facts: CellFacts, notes: Mapping[str, FencingNote]) -> Iterator[StatusProblem]:
    if notes:
        names = sorted(notes, key=lambda name: notes[name].began_ms)
        verb = "host is" if len(names) == 1 else "hosts are"
        yield StatusProblem(
            "fencing",
            cell,
            f"{len(names)} {verb} being fenced, since {duration(facts.now_ms - notes[names[0]].began_ms)} ago: "
            f"{named(names)}",
            "wait: once the fence command has proved that its machine is off, a host is written off, and its claims "
            "are placed elsewhere",
            (f"redsched events --host {names[0]}",),
            tuple(names[:MAX_NAMED]),
            len(names),
        )


def _failed(cell: str, facts: CellFacts, notes: Mapping[str, FencingNote]) -> Iterator[StatusProblem]:
    if notes:
        names = sorted(notes, key=lambda name: (-notes[name].failures, name))
        first = notes[names[0]]
        in_a_row = f"{first.failures} times in a row, the last time " if first.failures > 1 else ""
        ago = f"{duration(facts.now_ms - first.failed_ms)} ago"
        others = "" if len(names) == 1 else f"; also of {named(names[1:])}"
        yield StatusProblem(
            "fence-failed",
            cell,
            f"the fence command of host {names[0]} has failed {in_a_row}{ago}: {first.problem}{others}",
            f"the claims stay; the command is called again in {duration(first.next_ms - facts.now_ms)}. If the machine "
            "is certainly off, write the host off",
            (f"redsched host write-off {names[0]} --evacuate",),
            tuple(names[:MAX_NAMED]),
            len(names),
        )


def _held(cell: str, facts: CellFacts, held: HeldNote) -> StatusProblem:
    match held.reason:
        case Held.UNSETTLED:
            why = "the cell is not settled"
            advice = "wait until its hosts have attested, or their time is up"
        case Held.MOST_DOWN:
            why = f"{held.count} of {held.of} hosts are down, which is likely to have one cause"
            advice = (
                "look at their network, their power and what starts their agents; write off by hand what is certainly "
                "off"
            )
        case Held.LIMIT:
            why = f"{counted(held.count, 'host')} fenced lately, as many as may be"
            advice = (
                f"the next one may be in {duration(held.until_ms - facts.now_ms)} (REDSCHED_FENCE_HOSTS, _PERCENT and "
                "_WITHIN_S); write off by hand what is certainly off"
            )
    return StatusProblem(
        "fencing-held", cell, f"no host is fenced: {why}", advice, ("redsched host list --status down",)
    )
