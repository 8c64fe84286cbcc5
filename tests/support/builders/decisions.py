"""Short forms of decisions, for tests."""

from redsched.decide import Decision


def hosts_of(decision: Decision) -> list[tuple[str, ...]]:
    """Return the candidate hosts of each place, in the order in which they would be tried."""
    return [tuple(one.host for one in place.candidates) for place in decision.places]
