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
    lost: Counter[str] = field(default_factory=Counter)
    restored: int = 0
    epochs: int = 0
    wrong: list[str] = field(default_factory=list)
