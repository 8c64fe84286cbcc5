"""The delays before another attempt to move a claim: they grow up to a limit, and are forgotten."""

from redsched.scheduler.hosts.move_backoff import LONGEST_PAUSE_S, MoveBackoff

LONGEST_S = 1.2 * LONGEST_PAUSE_S
"""The longest delay, including the largest random addition."""


def test_pauses_grow_and_have_a_limit() -> None:
    pauses = MoveBackoff()
    assert pauses.is_due("a", 0.0)
    for _ in range(3):
        pauses.back_off("a", 100.0)
    assert not pauses.is_due("a", 103.0)
    assert pauses.is_due("a", 105.0)
    for _ in range(20):
        pauses.back_off("a", 200.0)
    assert not pauses.is_due("a", 200.0 + LONGEST_PAUSE_S / 2)
    assert pauses.is_due("a", 200.0 + LONGEST_S)


def test_a_claim_that_was_moved_is_tried_at_once() -> None:
    pauses = MoveBackoff()
    pauses.back_off("a", 100.0)
    pauses.forget("a")
    pauses.forget("b")
    assert pauses.is_due("a", 100.0)


def test_claims_of_which_nothing_more_is_heard_are_forgotten() -> None:
    """Claims that were released, or moved by another scheduler, would otherwise stay as long as any host is drained."""
    pauses = MoveBackoff()
    for number in range(10_000):
        pauses.back_off(f"claim-{number}", float(number))
        pauses.prune(float(number))
    assert len(pauses) <= LONGEST_S + LONGEST_PAUSE_S
    pauses.prune(10_000 + LONGEST_S + LONGEST_PAUSE_S)
    assert len(pauses) == 0


def test_a_pause_that_still_counts_is_kept() -> None:
    pauses = MoveBackoff()
    for _ in range(20):
        pauses.back_off("a", 0.0)
    pauses.prune(1.0)
    pauses.prune(LONGEST_PAUSE_S)
    assert not pauses.is_due("a", 1.0)
    pauses.back_off("a", LONGEST_S)
    assert not pauses.is_due("a", LONGEST_S + LONGEST_PAUSE_S / 2)
