"""The results of a run as tables, to be read and to be quoted."""

from collections import Counter
from collections.abc import Sequence

from tests.faults.suite.checks.ledger import Levels
from tests.faults.suite.reporting.result import Result, counted, seconds


def rounds_table(results: Sequence[Result]) -> str:
    """One line for each round: the faults, the times until recovery, the lost and restored claims."""
    words = "answers", "meanwhile", "epochs", "first s", "settled s", "agree s", "lost", "restored", "wrong"
    rows: list[tuple[str, ...]] = [("round", "faults", *words)]
    rows += [
        (
            str(one.round.number),
            "+".join(f"{strike.fault}{'@' + strike.point if strike.point else ''}" for strike in one.round.strikes),
            str(one.answers),
            counted(one.meanwhile),
            str(one.epochs),
            seconds(one.first_s),
            seconds(one.settled_s),
            seconds(one.agree_s),
            str(one.lost.total()),
            str(one.restored),
            str(len(one.wrong)),
        )
        for one in results
    ]
    return _aligned(rows)


def recovery_table(results: Sequence[Result]) -> str:
    """For each fault that was played alone: the times until recovery, median and longest."""
    by_fault: dict[str, list[Result]] = {}
    for one in results:
        if len(one.round.strikes) == 1:
            by_fault.setdefault(one.round.strikes[0].fault, []).append(one)
    rows = [("fault", "rounds", "first s", "longest", "settled s", "longest", "lost", "restored")]
    for fault, some in sorted(by_fault.items()):
        first, settled = ([getattr(one, word) for one in some] for word in ("first_s", "settled_s"))
        lost, restored = sum(one.lost.total() for one in some), sum(one.restored for one in some)
        times = (_median(first), _longest(first), _median(settled), _longest(settled))
        rows.append((fault, str(len(some)), *times, str(lost), str(restored)))
    return _aligned(rows)


def levels_table(command: str, results: Sequence[Result], levels: dict[str, Levels], over_committed: int) -> str:
    """The claims that each level kept: rows for the table of docs/operate/durability.md, in Markdown."""
    head = ("command", "rounds", "until", "acknowledged", "lost", "restored", "over-committed")
    rows = [head, ("---",) * len(head)]
    for until, level in sorted(levels.items()):
        what = (f"`{command}`", _played(results)) if len(rows) == 2 else ("", "")
        counts = (str(level.acknowledged), _lost(level.lost), str(level.restored), str(over_committed))
        rows.append((*what, until, *counts))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _played(results: Sequence[Result]) -> str:
    """Return the number of rounds, and of which faults: each with how often it was played."""
    faults = Counter(strike.fault for one in results for strike in one.round.strikes)
    return f"{len(results)}: {counted(faults)}"


def _lost(lost: Counter[str]) -> str:
    return f"{lost.total()} ({counted(lost)})" if lost else "0"


def _median(values: Sequence[float | None]) -> str:
    known = sorted(one for one in values if one is not None)
    return seconds(known[len(known) // 2] if known else None)


def _longest(values: Sequence[float | None]) -> str:
    return seconds(max((one for one in values if one is not None), default=None))


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
