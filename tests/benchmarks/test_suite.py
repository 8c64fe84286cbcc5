"""`python -m benchmarks` takes figures from the JSON of each program, writes them to a file, and compares two runs."""

import argparse
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import __main__ as command, result_plots
from benchmarks.results import (
    Finished,
    Results,
    ResultsError,
    commit,
    compare,
    geometric_means,
    machine,
    ratio,
    unlike,
    versions,
    with_ratios,
)
from benchmarks.suite import PROGRAMS, Figure, Program

MODEL_ROW: dict[str, Any] = {"schedulers": 2, "p50_ms": 5.0, "cpu_us": {"a": 1, "b": 2}, "retries": 0.5}
FOUND: dict[str, Any] = {
    "decide": [
        {"hosts": 10, "work": "repeated", "decisions": 5, "median_us": 20.0, "per_second": 1.0},
        {"hosts": 10, "work": "loop", "decisions": 5, "median_us": 80.0, "per_second": 1.0},
    ],
    "constraints": [{"hosts": 10, "case": "simple", "repeated_us": 2.0, "new_shape_us": 4.0, "loop_us": 8.0}],
    "throughput": [
        {"hosts": 10, "work": "claim.lua alone", "claims": 100, "seconds": 1.0, "cpu_us": {"store": 9.0}},
        {"hosts": 10, "work": "in process, 1 task", "claims": 100, "seconds": 4.0, "cpu_us": {}},
        {"hosts": 10, "work": "  of which deciding", "claims": 100, "seconds": 0.5, "cpu_us": {}},
    ],
    "script_cost": {"claim.lua": 640_000},
    "loop_lag": {"claims": 5, "rows": [{"work": "audit", "largest_cpu_ms": 3.0}], "wrong": []},
    "models": {
        "rows": [
            {
                "model": name,
                "schedulers": 2,
                "per_second": rate,
                "p50_ms": 5.0,
                "cpu_us": {"a": 1, "b": 2},
                "retries": 0.5,
            }
            for name, rate in (("filter", 10.0), ("redsched", 30.0))
        ]
    },
}
"""What each program prints, shortened."""


def figures_of(name: str) -> dict[str, tuple[float, float | None]]:
    """Return value and ratio of each figure of a program."""
    found = list(PROGRAMS[name].figures(FOUND[name]))
    return {figure.name: (figure.value, times) for figure, times in with_ratios(found)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_figure_has_a_name_of_its_own(name: str) -> None:
    """Two of the same name would be compared with each other."""
    names = [figure.name for figure in PROGRAMS[name].figures(FOUND[name])]
    assert len(names) == len(set(names))


def test_every_program_has_an_example_here() -> None:
    assert FOUND.keys() == PROGRAMS.keys()


def test_decisions_are_compared_with_the_loop() -> None:
    assert figures_of("decide") == {"10 hosts, repeated": (20.0, 4.0), "10 hosts, loop": (80.0, None)}
    assert figures_of("constraints")["simple, new shape"] == (4.0, 2.0)


def test_rates_are_compared_with_the_script_alone() -> None:
    assert figures_of("throughput") == {
        "10 hosts, claim.lua alone": (100.0, None),
        "10 hosts, claim.lua alone: store": (9.0, None),
        "10 hosts, in process, 1 task": (25.0, 0.25),
        "10 hosts, in process, 1 task, of which deciding": (200.0, 2.0),
    }


def test_models_are_compared_with_the_filter_scheduler() -> None:
    found = figures_of("models")
    assert found["redsched, 2 schedulers: rate"] == (30.0, 3.0)
    assert found["redsched, 2 schedulers: retries"] == (0.5, None)
    assert found["filter, 2 schedulers: processor"] == (3, None)


def test_counts_and_delays_stand_alone() -> None:
    assert figures_of("script_cost") == {"claim.lua": (640.0, None)}
    assert figures_of("loop_lag") == {"audit": (3.0, None)}


def test_a_ratio_above_one_is_better() -> None:
    assert ratio(30, 10, "more") == 3.0
    assert ratio(5, 10, "less") == 2.0
    assert ratio(0, 10, "less") is None


def results(*values: float) -> Results:
    figures = [Figure("decide", f"f{number}", value, "us", "less") for number, value in enumerate(values)]
    return Results({"cores": 2}, {"python": "3.11.7"}, "abc", False, figures=figures)


def test_two_runs_are_compared_by_the_figures_that_both_have() -> None:
    compared = compare(results(10, 10).figures, results(20, 80, 5).figures)
    assert [(one.figure.name, one.earlier, one.ratio) for one in compared] == [("f0", 20, 2.0), ("f1", 80, 8.0)]
    assert geometric_means(compared) == {"decide": pytest.approx(4.0)}


def test_what_makes_runs_hard_to_compare_is_told() -> None:
    other = replace(results(1), machine={"cores": 8}, versions={"python": "3.13.0"}, quick=True)
    assert list(unlike(results(1), other)) == [
        "cores: 8 before, 2 now",
        "python: 3.13.0 before, 3.11.7 now",
        "one of the runs is quick",
    ]
    assert list(unlike(results(1), results(2))) == []


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = results(1, 2)
    written.write(tmp_path / "new" / "r.json")
    assert Results.read(tmp_path / "new" / "r.json") == written


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 99}', '{"schema": 1}', '{"schema": 1, "figures": 3}'])
def test_another_file_is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ResultsError, match=r"other\.json"):
        Results.read(tmp_path / "other.json")


def test_the_machine_and_versions_are_recorded() -> None:
    assert machine()["cores"] >= 1
    assert versions()["python"].startswith("3.")
    assert re.match(r"(redis|valkey) \d", versions()["server"])
    assert len(commit().rstrip("+")) in {0, 40}


def given(**options: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"quick": True, "plots": None, "time_limit_s": 60.0} | options)


def run_decide(arguments: tuple[str, ...], **options: Any) -> Results:
    found = results()
    command.run_program(Program("decide", arguments, arguments, PROGRAMS["decide"].figures), given(**options), found)
    return found


def test_a_program_runs_and_its_figures_are_added() -> None:
    found = run_decide(("--hosts", "100", "--seconds", "0.01"))
    assert [one.name for one in found.figures] == [
        f"100 hosts, {work}" for work in ("repeated", "new shape", "refused", "loop")
    ]
    assert found.rows["decide"][0]["hosts"] == 100
    assert [(one.name, one.error) for one in found.programs] == [("decide", "")]


def test_a_program_that_fails_is_told_with_its_last_words() -> None:
    found = run_decide(("--hosts", "many"))
    assert "exit code 2" in found.programs[0].error
    assert "invalid int value: 'many'" in found.programs[0].error
    assert found.figures == []


def test_a_program_that_takes_too_long_is_ended() -> None:
    found = run_decide(("--seconds", "60"), time_limit_s=0.5)
    assert found.programs[0].error == "took more than 0.5 s: see --time-limit-s"


def test_json_of_another_form_is_an_error() -> None:
    found = results()
    found.programs.append(Finished("decide", [], 1.0))
    command._take(PROGRAMS["decide"], '[{"hosts": 3}]', found)
    assert "another form" in found.programs[0].error


def test_a_run_writes_its_file_and_compares_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = Program("decide", (), ("--hosts", "100", "--seconds", "0.01"), PROGRAMS["decide"].figures)
    monkeypatch.setitem(PROGRAMS, "decide", quick)
    file = tmp_path / "found.json"
    monkeypatch.setattr("sys.argv", ["benchmarks", "--quick", "--only", "decide", "--json", str(file)])
    assert command.main() == 0
    assert json.loads(file.read_text())["quick"] is True
    monkeypatch.setattr("sys.argv", [*sys.argv, "--compare", str(file)])
    assert command.main() == 0
    printed = capsys.readouterr().out
    assert "decide: " in printed
    assert "geometric mean" in printed


def test_a_missing_earlier_file_stops_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "--compare", str(tmp_path / "none.json")])
    assert command.main() == 2
    assert "none.json" in capsys.readouterr().err


def test_a_program_whose_tool_is_missing_is_left_out() -> None:
    assert Program("x", (), (), PROGRAMS["decide"].figures, needs="no-such-tool").missing() != ""
    assert PROGRAMS["decide"].missing() == ""


def test_tables_show_figures_without_a_baseline_too() -> None:
    console = Console(width=160, record=True, quiet=False)
    command.print_ratios(results(3.0), console)
    assert "f0" in console.export_text()


def test_ratios_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = list(PROGRAMS["decide"].figures(FOUND["decide"]))
    assert result_plots.save(found, tmp_path).read_bytes().startswith(b"\x89PNG")
