"""The cached best hosts: which they are, and when the cache cannot know them."""

from redsched.decide.top_hosts import Entry, TopHosts


def entry(score: float, name: str, row: int) -> Entry:
    return (-score, name, row)


A, B, C = entry(0.9, "a", 0), entry(0.8, "b", 1), entry(0.7, "c", 2)


def front(*entries: Entry, complete: bool = False) -> TopHosts:
    made = TopHosts()
    made.fill(list(entries), complete)
    return made


def test_a_row_that_gets_better_enters_and_one_that_gets_worse_leaves() -> None:
    best = front(A, B, C)
    better = entry(0.85, "d", 3)
    best.update(3, better)
    assert best.first(4) == [A, better, B, C]
    best.update(0, entry(0.1, "a", 0))
    assert best.first(3) == [better, B, C]


def test_what_lies_beyond_the_last_place_is_not_known() -> None:
    best = front(A, B, C)
    best.update(3, entry(0.6, "d", 3))
    assert best.first(4) is None
    best.update(2, None)
    assert best.first(3) is None
    assert best.first(2) == [A, B]


def test_the_last_place_stands_although_its_host_has_gone() -> None:
    best = front(A, B, C)
    best.update(2, None)
    best.update(3, entry(0.7, "cc", 3))
    assert best.first(3) is None
    best.update(3, entry(0.7, "bb", 3))
    assert best.first(3) == [A, B, entry(0.7, "bb", 3)]


def test_a_complete_front_answers_with_all_that_fit() -> None:
    best = front(A, complete=True)
    assert best.first(9) == [A]
    best.update(1, entry(0.0, "b", 1))
    assert best.first(9) == [A, entry(0.0, "b", 1)]
    best.update(0, None)
    best.update(1, None)
    assert best.first(9) == []


def test_a_row_taken_by_another_host_is_the_other_host() -> None:
    best = front(A, B, complete=True)
    best.update(0, entry(0.9, "z", 0))
    assert best.first(2) == [entry(0.9, "z", 0), B]


def test_a_front_that_grows_too_long_forgets_its_end() -> None:
    best = front(A, complete=True)
    for row in range(1, 200):
        best.update(row, entry(0.5, f"h{row:03}", row))
    assert best.first(33) == [A, *(entry(0.5, f"h{row:03}", row) for row in range(1, 33))]
    assert best.first(150) is None


def test_a_forgotten_row_that_changes_takes_no_other_with_it() -> None:
    best = front(A, complete=True)
    for row in range(1, 200):
        best.update(row, entry(0.5, f"h{row:03}", row))
    best.update(40, None)
    assert best.first(33) == [A, *(entry(0.5, f"h{row:03}", row) for row in range(1, 33))]
    best.update(40, entry(0.8, "h040", 40))
    assert best.first(3) == [A, entry(0.8, "h040", 40), entry(0.5, "h001", 1)]


def test_a_front_that_was_never_filled_knows_nothing_whatever_changes() -> None:
    """It is filled when the best hosts are first needed; before that, a changed row is not the only one that fits."""
    best = TopHosts()
    best.update(0, A)
    assert best.is_new
    assert best.first(1) is None
    best.fill([A, B], complete=True)
    assert not best.is_new
    assert best.first(3) == [A, B]
