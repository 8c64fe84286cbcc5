"""Places for several: played through one by one, so that no place aims at room promised to an earlier one."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from redsched.cache.columns import Columns
from redsched.decide.answers import Place
from redsched.decide.company import counted_in
from redsched.decide.pick import pick
from redsched.decide.queue import Queue
from redsched.decide.shape import Shape
from redsched.decide.trial import Trial
from redsched.model import Candidate


@dataclass(frozen=True, slots=True)
class Kind:
    """Some places alike: what they ask for, how many, and the name of the gang's member that they are."""

    shape: Shape
    count: int
    member: str = ""


def place(columns: Columns, kinds: Sequence[Kind], candidates: int, pick_from: int, rng: Random) -> list[Place]:
    """Return a place for each that is asked for, in order; fewer where room runs out."""
    wanted = sum(kind.count for kind in kinds)
    room = 2 * wanted + candidates + pick_from
    queues = [Queue(columns, kind.shape, kind.shape.best(room)) for kind in kinds]
    found: list[Place] = []
    with Trial(columns) as trial:
        for kind, queue in zip(kinds, queues, strict=True):
            for _ in range(kind.count):
                options = list(islice(queue.options(), max(candidates, pick_from)))
                if not options:
                    return found
                chosen = pick(options, pick_from, rng)
                request = kind.shape.request
                found.append(Place(listed([one for _, one in chosen], candidates), kind.member, request.server_group))
                row = chosen[0][0][2]
                trial.take(row, found[-1].chosen, tuple(counted_in(request, columns)))
                for other in queues:
                    other.touch(row)
    return found


def listed(options: Sequence[Sequence[Candidate]], most: int) -> tuple[Candidate, ...]:
    """Candidates in the order in which they are to be tried.

    All ways of the first host, then the best way of each other one: whoever lost a race for a host's devices can mostly
    have others of the same host.
    """
    first = list(options[0])
    return tuple((first + [ways[0] for ways in options[1:]])[: most + len(first) - 1])
