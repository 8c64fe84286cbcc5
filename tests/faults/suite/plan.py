"""What a run plays: which faults, when, on whom. A pure function of the seed; times are counted in answers.

A run is one round for each fault alone, in an order that the seed determines, and then rounds of several faults.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

CELLS = ("c1", "c2")
"""The names of the cells, which in a cluster are on different shards."""

SCHEDULERS = 4
AGENTS = 5
HOSTS_OF_AGENT = 10

CALM = (40, 120)
"""Answers between the beginning of a round and its first fault."""

APART = (0, 60)
"""Answers between two faults of a round."""

MAX_TOGETHER = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """What the plan needs to know about a fault: its choices. The rest is in `faults`."""

    name: str
    setups: tuple[str, ...] = ("single",)
    """The set-ups in which it can be played; it is played alone in the first of them."""
    on: str = ""
    """Its targets: `scheduler`, `agent`, `any`, a `cell`, or '' for the whole store."""
    most_victims: int = 1
    points: tuple[str, ...] = ("",)
    """The points at which it can strike."""
    seconds: tuple[float, float] = (0.5, 1.5)
    """Its minimum and maximum duration."""


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault of a round. It begins this many answers after the previous one (or the round's beginning)."""

    fault: str
    after: int
    seconds: float
    victims: tuple[str, ...] = ()
    point: str = ""

    def __str__(self) -> str:
        where = f" at {self.point}" if self.point else ""
        whom = f" of {', '.join(self.victims)}" if self.victims else ""
        return f"after {self.after} answers {self.fault}{where}{whom} for {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class Round:
    """Faults that overlap, and are healed in the order in which they began."""

    number: int
    setup: str
    strikes: tuple[Strike, ...]

    def __str__(self) -> str:
        return f"round {self.number} ({self.setup}): " + "; then ".join(map(str, self.strikes))


def children(kind: str) -> tuple[str, ...]:
    """Return the names of the processes that a fault may strike."""
    names = {
        "scheduler": tuple(f"scheduler-{number}" for number in range(SCHEDULERS)),
        "agent": tuple(f"agent-{number}" for number in range(AGENTS)),
    }
    return names["scheduler"] + names["agent"] if kind == "any" else names.get(kind, ())


SETUPS = ("single", "sentinel", "cluster")


def rounds(
    seed: int,
    shapes: Sequence[Shape],
    setups: Sequence[str] = SETUPS,
    alone: bool = True,
    together: bool = True,
    cells: Sequence[str] = CELLS,
) -> Iterator[Round]:
    """Yield the rounds of a run: each shape alone, at each of its points, and then several at once without end."""
    rng = Random(seed)
    shapes = [replace(one, setups=left) for one in shapes if (left := tuple(s for s in one.setups if s in setups))]
    numbers = itertools.count(1)
    each = [(shape, point) for shape in shapes for point in shape.points] if alone else []
    rng.shuffle(each)
    for shape, point in _by_setup(each):
        yield Round(next(numbers), shape.setups[0], (_strike(rng, shape, point, CALM, cells),))
    known = sorted({setup for shape in shapes for setup in shape.setups})
    while together and known:
        setup = rng.choice(known)
        possible = [shape for shape in shapes if setup in shape.setups]
        for strikes in _together(rng, possible, cells):
            yield Round(next(numbers), setup, strikes)


ROUNDS_TOGETHER = 4
"""Rounds of several faults on one set-up, before the next set-up."""


def _together(rng: Random, possible: Sequence[Shape], cells: Sequence[str]) -> Iterator[tuple[Strike, ...]]:
    for _ in range(ROUNDS_TOGETHER):
        first, *more = [rng.choice(possible) for _ in range(rng.randint(2, MAX_TOGETHER))]
        strikes = [_strike(rng, first, rng.choice(first.points), CALM, cells)]
        strikes += [_strike(rng, shape, rng.choice(shape.points), APART, cells) for shape in more]
        yield tuple(strikes)


def _by_setup(each: list[tuple[Shape, str]]) -> list[tuple[Shape, str]]:
    """Group rounds by set-up, by a stable sort, so they are played while it exists: starting one takes seconds."""
    setups = list(dict.fromkeys(shape.setups[0] for shape, _ in each))
    return sorted(each, key=lambda one: setups.index(one[0].setups[0]))


def _strike(rng: Random, shape: Shape, point: str, after: tuple[int, int], cells: Sequence[str]) -> Strike:
    possible = children(shape.on)
    count = min(rng.randint(1, shape.most_victims), len(possible))
    victims = tuple(sorted(rng.sample(possible, count)))
    strike = Strike(shape.name, rng.randint(*after), round(rng.uniform(*shape.seconds), 1), victims, point)
    # The choice of the cell does not affect the rest of the plan, so one cell and several cells get the same plan.
    return replace(strike, victims=(Random(str(strike)).choice(cells),)) if shape.on == "cell" else strike
