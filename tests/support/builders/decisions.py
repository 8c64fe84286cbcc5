"""Short forms of decisions, for tests."""

from redsched.decide.explain.changes import Effort, change_steps
from redsched.decide.explain.edits import Edit
from redsched.decide.profile import RequestProfile
from redsched.decide.result import Decision
from redsched.decide.steps import finished


def hosts_of(decision: Decision) -> list[tuple[str, ...]]:
    """Return the candidate hosts of each place, in the order in which they would be tried."""
    return [tuple(one.host for one in place.candidates) for place in decision.places]


def smallest_change(profile: RequestProfile, row: int) -> tuple[Edit, ...]:
    """Return all that `change_steps` finds without a limit."""
    return finished(change_steps(profile, row, Effort()))
