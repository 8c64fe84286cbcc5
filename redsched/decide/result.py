"""The results of decisions, as plain data."""

from dataclasses import field

from redsched.model import Candidate, ClaimRule, ReasonCount
from redsched.model.record import record


@record
class Place:
    """One requested place: its candidates, the chosen one first, then the others, best first.

    A host may occur twice, with different pools. `member` is the gang member it belongs to; `group` the server group
    that counts it. `note` is the text about the decision that its claim keeps; '' for nothing.
    """

    candidates: tuple[Candidate, ...]
    member: str = ""
    group: str = ""
    note: str = field(default="", compare=False)

    @property
    def chosen(self) -> Candidate:
        """The candidate to try first."""
        return self.candidates[0]


@record
class Decision:
    """The places that a request may get, or the reasons why it gets none.

    `places` has one entry per requested place (for an incremental request, as many as there is room for); it is empty
    if the request is refused, and only then are there `reasons`. `rules` must hold for the places together when they
    are claimed. `alternates` also fit, best first, and are no place's first candidate; there are `count` more than
    requested (if enough hosts fit), so that those claimed in the end can be left out. `score` is that of the best host:
    higher is better, comparable between cells. `fits` of `hosts` hosts may take a place: 0 if refused.
    """

    places: tuple[Place, ...]
    alternates: tuple[str, ...]
    score: float
    hosts: int
    fits: int
    reasons: tuple[ReasonCount, ...] = ()
    rules: tuple[ClaimRule, ...] = ()
