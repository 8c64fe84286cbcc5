"""`redsched capacity`: its table, on a terminal too, and its JSON."""

import pytest

from redsched.cli.verbs import capacity as verb
from redsched.model.records.capacity import CapacityRow, ClassCapacity
from tests.cli.conftest import Redsched, report_all
from tests.cli.test_terminal import on_a_terminal
from tests.support.builders.reservations import reserved
from tests.support.fleets.gpu_lab import GPU, reports

BOTH_LINKS = True


def test_the_table(redsched: Redsched) -> None:
    redsched("select", "VCPU=3", "--host", "h1", "--project", "web").check()
    lines = [line.split() for line in redsched("capacity").check().output.splitlines()]
    assert lines == [
        ["RESOURCE", "TOTAL", "CLAIMED", "EXTERNAL", "KEPT", "FREE", "AWAY", "LARGEST", "AT"],
        ["MEMORY_MB", "16384", "0", "0", "-", "16384", "100%", "0", "16384", "h1"],
        ["VCPU", "12", "3", "25%", "0", "-", "9", "75%", "0", "5", "h1"],
    ]
    lines = [line.split() for line in redsched("capacity", "--by", "project").check().output.splitlines()]
    assert lines == [["PROJECT", "RESOURCE", "TOTAL", "CLAIMED"], ["web", "VCPU", "12", "3", "25%"]]


def test_the_sums_of_consumers(redsched: Redsched) -> None:
    redsched("select", "VCPU=3", "--project", "web", "--consumer", "ci").check()
    redsched("select", "VCPU=1", "--project", "db", "--consumer", "ci").check()
    redsched("select", "VCPU=2", "--project", "db").check()
    lines = [line.split("\t") for line in redsched("capacity", "--by", "consumer").check().output.splitlines()]
    assert lines == [
        ["CONSUMER", "RESOURCE", "TOTAL", "CLAIMED"],
        ["-", "VCPU", "12", "2 17%"],
        ["ci", "VCPU", "12", "4 33%"],
    ]


def test_it_fits_a_terminal(redsched: Redsched, store: str) -> None:
    redsched("host", "disable", "h2").check()
    lines = on_a_terminal(store, "capacity", "--by", "zone")
    assert lines[0].split()[:3] == ["ZONE", "RESOURCE", "TOTAL"]
    assert [line for line in lines if not line.startswith(("ZONE", "az1", "az2"))] == []  # no cell is folded


def test_gpus_are_counted_in_gpus_on_a_terminal(redsched: Redsched, store: str) -> None:
    """For programs the class keeps its name and its unit."""
    report_all(store, reports(boxes=1, machines=0))
    redsched("select", "GPU=0.5").check()
    shown = [" ".join(line.split()) for line in on_a_terminal(store, "capacity")]
    assert "GPU 4 0.5 12% 0 3.5 88% 0 1 gpu-1" in [line.removesuffix(" gpu1") for line in shown]
    assert f"{GPU}\t4000\t500 12%\t0\t-\t3500 88%\t0\t1000\tgpu-1 gpu1" in redsched("capacity").check().output


def test_what_is_kept_has_a_column_of_its_own(redsched: Redsched, store: str) -> None:
    """As much of it as is free: it counts neither as external nor as free."""
    redsched("select", "VCPU=3", "--host", "h1").check()
    with reserved(store, "h1", {"VCPU": 6}):
        lines = [line.split() for line in redsched("capacity").check().output.splitlines()]
        found = redsched("capacity", "--json").check().json()["capacity"][0]["classes"]["VCPU"]
    assert lines[2] == ["VCPU", "12", "3", "25%", "0", "5", "42%", "4", "33%", "0", "4", "h2"]
    assert found["claimed"] + found["external"] + found["kept"] + found["free"] + found["away"] == found["total"]


def test_json(redsched: Redsched) -> None:
    found = redsched("capacity", "--by", "zone", "--json").check().json()
    assert (found["by"], [row["name"] for row in found["capacity"]]) == ("zone", ["az1", "az2"])
    vcpu = {"total": 4, "claimed": 0, "external": 0, "kept": 0, "free": 4, "away": 0, "largest": 4, "largest_at": "h2"}
    assert found["capacity"][1]["classes"] == {"VCPU": vcpu}


def test_another_dimension_is_refused(redsched: Redsched) -> None:
    redsched("capacity", "--by", "host").check_failed(2, "--by", "zone", "aggregate", "project")


def test_a_tenant_gets_a_row_for_each_project(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without columns that are empty for tenants."""
    rows = [
        CapacityRow("p10", {"VCPU": ClassCapacity(total=8, claimed=2, free=6, largest=4)}),
        CapacityRow("p2", {"VCPU": ClassCapacity(total=4, claimed=4)}),
    ]
    monkeypatch.setattr(verb, "with_fleet", lambda *_, **__: rows)
    verb.capacity()
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["PROJECT", "RESOURCE", "TOTAL", "CLAIMED", "FREE", "LARGEST"],
        ["p2", "VCPU", "4", "4 100%", "0", "0"],
        ["p10", "VCPU", "8", "2 25%", "6 75%", "4"],
    ]
