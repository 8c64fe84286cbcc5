"""The share of the time that work which can be left out may take."""

from hypothesis import given, strategies as st

from redsched.allowance import Allowance

SHARE = 0.01


class Clock:
    """A clock that is moved by hand, in seconds."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def work(allowance: Allowance, clock: Clock, takes_s: float) -> float:
    """Do work if it is allowed, and return the time that it took."""
    if not allowance.begin():
        return 0.0
    clock.now_s += takes_s
    allowance.end()
    return takes_s


@given(st.lists(st.tuples(st.floats(1e-6, 1e-3), st.floats(1e-6, 40e-6)), min_size=1, max_size=3000))
def test_work_takes_at_most_its_share_and_what_was_saved(steps: list[tuple[float, float]]) -> None:
    clock = Clock()
    allowance = Allowance(SHARE, clock)
    taken = 0.0
    for other_s, takes_s in steps:
        clock.now_s += other_s
        taken += work(allowance, clock, takes_s)
    assert taken <= SHARE * (clock.now_s + 0.5) + 40e-6


def test_all_work_is_done_at_an_ordinary_rate() -> None:
    """500 times a second, of 15 us each: less than one percent."""
    clock = Clock()
    allowance = Allowance(SHARE, clock)
    for _ in range(5000):
        clock.now_s += 2e-3
        assert work(allowance, clock, 15e-6)
    assert allowance.refused == 0


def test_a_pause_in_the_middle_of_the_work_is_not_charged() -> None:
    clock = Clock()
    allowance = Allowance(SHARE, clock)
    assert work(allowance, clock, 10.0)
    assert work(allowance, clock, 10e-6)


def test_work_without_a_pause_is_refused_until_time_has_passed() -> None:
    clock = Clock()
    allowance = Allowance(SHARE, clock)
    while work(allowance, clock, 50e-6):
        pass
    assert allowance.refused == 1
    clock.now_s += 1.0
    assert work(allowance, clock, 50e-6)
