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

SHORT_SEEDS = {"single": 5, "sentinel": 20, "cluster": 16}
SHORT_ROUNDS = 1
PLAYED = {
    "store-clock",
    "replica-clock",
    "renamed",
    "two-cells",
    "rezoned",
    "lost-gpu",
    "drain",
    "primary-stands-still",
}
"""The faults of the rounds of these seeds: clocks, names, zones and devices that change while claims move."""
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
    seed = int(time.time()) if is_long() else SHORT_SEEDS[setup]
    rounds = planned(seed, setups=(setup,), alone=is_long())
    lines = [f"seed {seed}\n"]
    most = None if is_long() else SHORT_ROUNDS
    done = await run(seed, islice(rounds, most), time.monotonic() + LONG_S, Lines(lines.append), durability)
    print("".join(lines), done.tables(), sep="\n")
    assert done.wrong == [], "".join(lines)
    assert done.results


def test_the_short_rounds_play_what_they_should() -> None:
    """A new fault changes what a seed plays: then choose other seeds."""
    played = set[str]()
    for setup, seed in SHORT_SEEDS.items():
        for round_ in islice(planned(seed, setups=(setup,), alone=False), SHORT_ROUNDS):
            played |= {strike.fault for strike in round_.strikes}
    assert played >= PLAYED
