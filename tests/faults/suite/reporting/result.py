"""The result of a round."""

from collections import Counter
from dataclasses import dataclass, field

from tests.faults.suite.plan import Round


@dataclass(slots=True)
class Result:
    """The result of a round. Times are seconds from the end of its last fault, or from the end of its traffic."""

    round: Round
    answers: int = 0
    meanwhile: Counter[str] = field(default_factory=Counter)
    """Requests placed in each cell from the beginning of the first fault to the end of the last."""
    first_s: float | None = None
    """Time until each cell had placed a claim that was requested afterwards."""
    settled_s: float | None = None
    """Time until every host had attested and was up, and the cells were settled."""
    agree_s: float | None = None
    """Time until nothing was in progress, and everything agreed."""
    acknowledged: Counter[str] = field(default_factory=Counter)
    """Claims that callers were informed of, by the state that the answer had waited for."""
    lost: Counter[str] = field(default_factory=Counter)
    """Lost claims by their end; shelved ones are not included."""
    restored: int = 0
    over_committed: int = 0
    epochs: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lost = f" ({counted(self.lost)})" if self.lost else ""
        times = f"first {seconds(self.first_s)} s, settled {seconds(self.settled_s)} s, agree {seconds(self.agree_s)} s"
        verdict = f"{len(self.wrong)} WRONG" if self.wrong else "ok"
        return (
            f"{verdict}: {self.answers} answers, {self.acknowledged.total()} acknowledged, "
            f"{self.lost.total()} lost{lost}, {self.restored} restored, {self.over_committed} over-committed; {times}"
        )


def counted(counts: Counter[str]) -> str:
    """Return counts by name, as `expired 1, forgotten 2`; `-` for none."""
    return ", ".join(f"{word} {count}" for word, count in sorted(counts.items())) or "-"


def seconds(value: float | None) -> str:
    """Return seconds to a tenth; `-` for what never happened."""
    return "-" if value is None else f"{value:.1f}"
