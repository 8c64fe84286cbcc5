"""What a round came to."""

from collections import Counter
from dataclasses import dataclass, field

from tests.faults.suite.plan import Round


@dataclass(slots=True)
class Result:
    """What a round came to. Times are seconds from the end of its last fault, or from the rest of its traffic."""

    round: Round
    answers: int = 0
    meanwhile: Counter[str] = field(default_factory=Counter)
    """Requests placed in each cell from the beginning of the first fault to the end of the last."""
    first_s: float | None = None
    """Until in each cell a claim that was asked for afterwards was placed."""
    settled_s: float | None = None
    """Until every host had attested and was up, and the cells were settled."""
    agree_s: float | None = None
    """Until nothing was under way any more, and everything agreed."""
    acknowledged: Counter[str] = field(default_factory=Counter)
    """Claims that callers were told of, by the word that the answer waited for."""
    lost: Counter[str] = field(default_factory=Counter)
    """By what became of them; shelved ones are not among them."""
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
    """Return counts by word, as `expired 1, forgotten 2`; `-` where there are none."""
    return ", ".join(f"{word} {count}" for word, count in sorted(counts.items())) or "-"


def seconds(value: float | None) -> str:
    """Return seconds to a tenth; `-` for what never came."""
    return "-" if value is None else f"{value:.1f}"
