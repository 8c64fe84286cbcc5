"""The state of a drain or an evacuation, derived from what the store holds about the host."""

import pytest

from redsched.model import HostStatus
from redsched.model.records.hosts import DrainState, HostView

ENABLED, DRAINING, DISABLED = HostStatus.ENABLED, HostStatus.DRAINING, HostStatus.DISABLED


@pytest.mark.parametrize(
    ("status", "draining", "deadline_ms", "claims", "state"),
    [
        (ENABLED, "", None, 3, DrainState.NONE),
        (ENABLED, "", None, 0, DrainState.NONE),
        (DISABLED, "", None, 0, DrainState.NONE),
        (DRAINING, "", None, 3, DrainState.WAITING),
        (DRAINING, "", None, 0, DrainState.EMPTY),
        (DRAINING, "move", None, 3, DrainState.MOVING),
        (DRAINING, "move", 9, 3, DrainState.MOVING),
        (DRAINING, "move", 9, 0, DrainState.EMPTY),
        (DRAINING, "stop", 9, 3, DrainState.STOPPING),
        (DRAINING, "", 9, 3, DrainState.OVERDUE),
        (DISABLED, "evacuate", None, 3, DrainState.MOVING),
        (DISABLED, "evacuate", None, 0, DrainState.EMPTY),
    ],
)
def test_the_state_of_a_drain(
    status: HostStatus, draining: str, deadline_ms: int | None, claims: int, state: DrainState
) -> None:
    host = HostView(
        name="h1",
        cell="c1",
        zone="az1",
        status=status,
        alive=True,
        attested=True,
        version=1,
        lease_s=30,
        slots={},
        traits=frozenset(),
        labels={},
        metrics={},
        claims=claims,
        draining=draining,
        drain_deadline_ms=deadline_ms,
    )
    assert host.drain_state is state
