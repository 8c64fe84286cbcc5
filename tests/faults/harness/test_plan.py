"""The plans of the fault suite are repeatable and complete, and respect the restrictions of each fault."""

from itertools import islice

import pytest

from redsched.store.client.scripts import load_all
from tests.faults.suite.faults import ALL, BY_NAME
from tests.faults.suite.faults.processes import HOOK, KillAgent, KillScheduler
from tests.faults.suite.plan import APART, CALM, CELLS, MAX_TOGETHER, SETUPS, Round, children
from tests.faults.suite.run import planned, shapes

SEEDS = range(5)
MANY = 120


def rounds_of(seed: int) -> list[Round]:
    return list(islice(planned(seed), MANY))


def alone(seed: int) -> list[Round]:
    return list(planned(seed, together=False))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_plans_the_same_each_time(seed: int) -> None:
    assert rounds_of(seed) == rounds_of(seed)
    assert rounds_of(seed) != rounds_of(seed + 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_fault_is_played_alone_at_each_of_its_points(seed: int) -> None:
    played = {(strike.fault, strike.point) for round_ in alone(seed) for strike in round_.strikes}
    assert played == {(one.shape.name, point) for one in ALL for point in one.shape.points}
    assert all(len(round_.strikes) == 1 for round_ in alone(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_afterwards_several_are_played_at_once_on_every_set_up(seed: int) -> None:
    later = rounds_of(seed)[len(alone(seed)) :]
    assert {round_.setup for round_ in later} == set(SETUPS)
    assert {len(round_.strikes) for round_ in later} == set(range(2, MAX_TOGETHER + 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_strikes_are_what_their_faults_allow(seed: int) -> None:
    for round_ in rounds_of(seed):
        for number, strike in enumerate(round_.strikes):
            shape = BY_NAME[strike.fault].shape
            assert round_.setup in shape.setups
            assert strike.point in shape.points
            assert set(strike.victims) <= set(CELLS if shape.on == "cell" else children(shape.on))
            assert len(strike.victims) <= shape.most_victims
            assert bool(strike.victims) == bool(shape.on)
            least, most = APART if number else CALM
            assert least <= strike.after <= most
            assert shape.seconds[0] - 0.05 <= strike.seconds <= shape.seconds[1] + 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_each_cell_is_struck_and_fewer_cells_change_nothing_else(seed: int) -> None:
    def struck(round_: Round) -> list[tuple[str, ...]]:
        return [strike.victims for strike in round_.strikes if BY_NAME[strike.fault].shape.on == "cell"]

    assert {victims for round_ in rounds_of(seed) for victims in struck(round_)} == {(cell,) for cell in CELLS}
    one = list(islice(planned(seed, cells=("c1",)), MANY))
    assert {victims for round_ in one for victims in struck(round_)} == {("c1",)}
    for mine, other in zip(one, rounds_of(seed), strict=True):
        assert str(mine) == str(other).replace(" of c2 ", " of c1 ")


def test_a_set_up_plays_in_one_go_what_is_played_alone() -> None:
    setups = [round_.setup for round_ in alone(1)]
    assert len([one for one, former in zip(setups, ["", *setups], strict=False) if one != former]) == len(set(setups))


def test_faults_are_chosen_by_a_part_of_their_name() -> None:
    assert {one.name for one in shapes("kill-w")} == {"kill-with-aof", "kill-without-aof"}
    with pytest.raises(ValueError, match="no fault is called like 'nonsense': kill-with-aof"):
        shapes("nonsense")


def test_every_fault_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(ALL)


def test_points_are_of_scripts_that_there_are() -> None:
    points = {point for one in (KillScheduler, KillAgent) for point in one.shape.points} - {"any", *HOOK}
    assert {point.partition("-")[0] for point in points} <= load_all().keys()
