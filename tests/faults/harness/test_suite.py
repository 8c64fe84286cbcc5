"""Run the fault suite: a round of each set-up with a fixed seed, or in the long profile for 5 minutes with a new seed.

`scripts/faults` runs the same suite from the command line (docs/faults.md).
"""

import time
from itertools import islice

import pytest

from tests.faults.suite.plan import SETUPS
from tests.faults.suite.reporting.telling import Lines
from tests.faults.suite.run import planned, run
from tests.support.profiles import is_long

SHORT_SEED = 4
SHORT_ROUNDS = 1
LONG_S = 300.0
DURABILITIES = ("none", "replicas=1") if is_long() else ("none",)


@pytest.mark.slow
@pytest.mark.timeout(3600 if is_long() else 900)
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("setup", SETUPS)
async def test_nothing_breaks_what_must_hold(setup: str, durability: str) -> None:
    """Faults strike four schedulers and fifty hosts under traffic, alone and combined; no check finds a problem."""
    if setup == "single" and "replicas" in durability:
        pytest.skip("one server has no replicas")
    seed = int(time.time()) if is_long() else SHORT_SEED
    rounds = planned(seed, setups=(setup,), alone=is_long())
    lines = [f"seed {seed}\n"]
    most = None if is_long() else SHORT_ROUNDS
    done = await run(seed, islice(rounds, most), time.monotonic() + LONG_S, Lines(lines.append), durability)
    print("".join(lines), done.tables(), sep="\n")
    assert done.wrong == [], "".join(lines)
    assert done.results
