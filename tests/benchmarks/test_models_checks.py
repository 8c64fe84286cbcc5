"""The checks of a comparison of models find what is planted, and the figures are those of the records."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.models import original, plots, report
from benchmarks.models.checks import differences, over_commitments, wrong_refusals
from benchmarks.models.figures import Row, make_row
from benchmarks.models.hosts import Book
from benchmarks.models.rpc import Message
from benchmarks.models.scheduling import Record
from benchmarks.models.work import Ask, HostSpec, Setup, make_asks, make_fleet

HOST = HostSpec("h1", {"VCPU": 4, "MEMORY_MB": 100})
ASKS = tuple(Ask(f"r{number}", {"VCPU": 2, "MEMORY_MB": 10}) for number in range(4))
SETUP = Setup("filter", "", "", (HOST,), ASKS)


def record(number: int, host: str = "h1", began: float = 0.0, ended: float = 1.0, retries: int = 0) -> Record:
    return Record(ASKS[number], host, retries, retries, began, ended, ended)


def books(*numbers: int) -> Message:
    """Return the books of a host that got these requests, one after the other."""
    book = Book(HOST)
    for number in numbers:
        book.enter(ASKS[number].claim_id, ASKS[number].amounts)
    return {"claims": {"h1": dict(book.claims)}, "over": book.over, "repeated": book.repeated}


def test_a_host_above_its_capacity_is_found_by_its_books_and_by_the_answers() -> None:
    answered = [record(0), record(1), record(2)]
    assert over_commitments(SETUP, answered[:2], books(0, 1)) == []
    assert over_commitments(SETUP, answered[:2], books(0, 1, 2)) == ["h1: r2 makes 6 VCPU of 4"]
    assert over_commitments(SETUP, answered, books(0, 1)) == ["h1: 6 VCPU of 4 were answered"]


def test_one_claim_that_arrives_twice_is_counted_once_and_told() -> None:
    found = books(0, 0)
    assert found["claims"] == {"h1": {"r0": ASKS[0].amounts}}
    assert differences(SETUP, [record(0)], found) == ["h1: r0 arrived twice"]


def test_answers_and_books_must_name_the_same_placements() -> None:
    assert differences(SETUP, [record(0), record(1)], books(0, 1)) == []
    assert differences(SETUP, [record(0)], books()) == ["h1 does not have r0, which was answered"]
    assert differences(SETUP, [record(1, host="")], books(1)) == ["h1 has r1, which was not answered"]
    assert differences(SETUP, [record(0), record(0)], books(0)) == ["r0 was answered 2 times"]
    stranger = Record(Ask("x", {}), "", 0, 0, 0.0, 1.0, 1.0)
    assert differences(SETUP, [stranger], books()) == ["x was never asked for"]


def test_a_refusal_is_wrong_while_a_host_has_room() -> None:
    """Requests that had begun when the refusal came count as placed; later ones do not."""
    refused = record(3, host="", began=5.0, ended=6.0)
    assert wrong_refusals(SETUP, [record(0), refused]) == ["r3 was refused while h1 had room"]
    assert wrong_refusals(SETUP, [record(0), record(1), refused]) == []
    assert wrong_refusals(SETUP, [record(0), record(1, began=5.9, ended=7.0), refused]) == []
    assert wrong_refusals(SETUP, [record(0), record(1, began=6.1, ended=7.0), refused]) != []


def test_a_row_has_the_figures_of_its_records() -> None:
    answered = [record(0, ended=0.010), record(1, ended=0.030, retries=1), record(2, host="", ended=0.050, retries=2)]
    row = make_row(SETUP, answered, books(0, 1), {"store": 0.003})
    assert (row.decided, row.placed, row.wrong_refusals, row.over_commitments) == (3, 2, 0, 0)
    assert row.per_second == pytest.approx(60)
    assert row.p50_ms == pytest.approx(30)
    assert row.on_host_p50_ms == pytest.approx(20)
    assert row.retries == 1.0
    assert row.cpu_us == {"store": pytest.approx(1000)}
    assert make_row(SETUP, answered, books(0, 1, 2), {}).problems != []


def test_a_fleet_is_filled_to_the_stated_fraction_and_takes_every_flavor() -> None:
    asks = make_asks(500, 3)
    fleet = make_fleet(10, asks, 0.8)
    demand = sum(ask.amounts["VCPU"] for ask in asks)
    assert sum(spec.capacity["VCPU"] for spec in fleet) == pytest.approx(demand / 0.8, abs=10)
    assert make_asks(500, 3) == asks != make_asks(500, 4)
    assert make_fleet(500, asks[:3], 0.8)[0].capacity["VCPU"] == max(ask.amounts["VCPU"] for ask in asks[:3])


def test_schedulers_share_the_requests_in_order() -> None:
    setup = Setup("filter", "", "", (HOST,), ASKS, schedulers=3)
    assert [setup.asks_of(number) for number in range(3)] == [(ASKS[0], ASKS[3]), (ASKS[1],), (ASKS[2],)]


def rows() -> list[Row]:
    def one(model: str, schedulers: int, retries: float) -> Row:
        return Row(model, schedulers, 3, 31, 31, 30, 1.0, 31.0, 5.0, 9.0, 6.0, retries, retries, 1, 0)

    return [one("filter", 1, 0.0), one("filter", 1, 4 / 31), one("filter", 4, 16 / 31), one("redsched", 1, 0.0)]


def test_the_published_case_stands_beside_what_was_reported() -> None:
    assert list(original.lines(rows())) == [
        ("filter", 1, "6.5 (0.0 to 12.9)", "22.6", 2),
        ("filter", 4, "51.6 (51.6 to 51.6)", "51.6", 1),
        ("redsched", 1, "0.0 (0.0 to 0.0)", "", 1),
    ]


def test_the_published_case_has_one_request_more_than_fits() -> None:
    found = list(original.setups(SETUP, ["filter", "redsched"], rounds=2))
    assert [(one.model, one.schedulers, one.seed) for one in found[:4]] == [
        ("filter", 1, 0),
        ("filter", 4, 0),
        ("redsched", 1, 0),
        ("redsched", 4, 0),
    ]
    assert len(found) == 8
    assert (len(found[0].hosts), len(found[0].asks), found[0].pick_from) == (3, 31, 1)
    assert sum(spec.capacity["VCPU"] for spec in found[0].hosts) == 30


def test_tables_and_bars_name_every_run() -> None:
    console = Console(width=140, file=io.StringIO(), record=True)
    report.print_rows(rows(), console)
    report.print_bars(rows(), console)
    printed = console.export_text()
    assert printed.count("filter") == 3 + 2 * 3
    assert "redsched 1" in printed


def test_a_plot_is_an_image(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert plots.save(rows(), tmp_path / "new").read_bytes().startswith(b"\x89PNG")
