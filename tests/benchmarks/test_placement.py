"""The comparison with a running Placement, played against a double: conflicts, over-claims and leftovers."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest

from benchmarks.placement import __main__ as placement
from benchmarks.placement.cycles import Row, ServiceError, measure
from benchmarks.placement.json_client import JsonClient
from benchmarks.placement.openstack import PlacementService
from tests.support.processes.placement_double import TOKEN, PlacementDouble, running


@pytest.fixture
def double() -> Iterator[PlacementDouble]:
    with running(PlacementDouble()) as one:
        yield one


def measured(double: PlacementDouble, places: int = 5) -> Row:
    return measure(PlacementService(double.url, TOKEN, 100), providers=3, places=places, clients=3, seconds=0.1)


def test_cycles_are_counted_and_the_last_places_are_granted_once(double: PlacementDouble) -> None:
    row = measured(double)
    assert row.cycles >= 6
    assert (row.conflicts, row.refused, row.granted, row.over_claims) == (0, 0, 5, 0)
    assert row.claim_p99_ms >= row.claim_p50_ms > 0


def test_nothing_is_left_behind(double: PlacementDouble) -> None:
    measured(double)
    assert (double.providers, double.allocations, double.classes) == ({}, {}, set())


def test_conflicts_are_counted_and_the_claim_is_repeated(double: PlacementDouble) -> None:
    double.conflict_every = 3
    row = measured(double)
    assert row.conflicts > 0
    assert (row.refused, row.granted, row.over_claims) == (0, 5, 0)


def test_a_claim_that_only_conflicts_is_refused(double: PlacementDouble) -> None:
    """Four calls for each of the candidates, as Nova's client makes them."""
    double.conflict_every = 1
    service = PlacementService(double.url, TOKEN, 100)
    with service.fleet(2, 1, 1), service.client(0) as client:
        assert client.claim(service.many, 1) == ("", 8)


def test_places_that_are_given_twice_are_found(double: PlacementDouble) -> None:
    """The planted error: two claims beyond the capacity are granted."""
    double.over_by = 2
    row = measured(double, places=5)
    assert (row.granted, row.over_claims) == (7, 2)
    assert placement.wrong([row]) == ["placement: 2 of 5 places were given twice"]


def test_places_that_nobody_gets_are_found() -> None:
    row = Row("placement", 3, 10, 1.0, 1.0, 1.0, 0, 0, 5, 4, 0, 0)
    assert placement.wrong([row]) == ["placement: 4 of 5 places were granted"]


def test_an_unexpected_answer_stops_the_run_and_cleans_up(double: PlacementDouble) -> None:
    def broken(*_: object) -> tuple[int, None]:
        return 503, None

    double.delete_allocations = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(ServiceError, match="503"):
        measured(double)


def test_what_a_failed_run_has_claimed_is_deleted(double: PlacementDouble) -> None:
    service = PlacementService(double.url, TOKEN, 100)
    with suppress(ZeroDivisionError), service.fleet(2, 1, 1), service.client(0) as client:
        assert client.claim(service.many, 1).claim_id
        assert double.allocations
        raise ZeroDivisionError
    assert (double.providers, double.allocations, double.classes) == ({}, {}, set())


def test_a_wrong_token_is_told(
    double: PlacementDouble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["placement", "--url", double.url, "--token", "wrong"])
    assert placement.main() == 2
    assert "401" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["controller/placement", "ftp://controller"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no URL of a service"):
        JsonClient(url)


def test_both_services_stand_side_by_side(
    double: PlacementDouble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """redsched runs for real: `redsched up` with a store of its own."""
    small = ["--providers", "3", "--places", "4", "--clients", "2", "--seconds", "0.1", "--workers", "1"]
    monkeypatch.setattr("sys.argv", ["placement", "--url", double.url, "--token", TOKEN, *small, "--json"])
    assert placement.main() == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["service"], row["granted"], row["over_claims"], row["refused"]) for row in rows] == [
        ("placement", 4, 0, 0),
        ("redsched", 4, 0, 0),
    ]
    assert min(row["cycles"] for row in rows) >= 4
    placement.print_table([Row(**row) for row in rows])
    assert "4 of 4" in capsys.readouterr().out
