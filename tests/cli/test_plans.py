"""`redsched plan`: what would happen, on the running cells and on an export."""

from pathlib import Path

import pytest

from tests.cli.conftest import Redsched
from tests.cli.parts import Ran, run, up

BOTH_LINKS = True


FLEET = "hosts: [{name: 'new-{n}', repeat: 2, zone: az3, inventories: {VCPU: {total: 4}}}]"


def test_capacity_is_shown_by_zone_with_what_runs_out(redsched: Redsched) -> None:
    redsched("select", "VCPU=3", "--host", "h1", "--id", "db").check()
    assert redsched("plan", "capacity", "VCPU=2").check().output.splitlines() == [
        "4 more fit",
        "ZONE\tPLACES",
        "az1\t2",
        "az2\t2",
        "CLASS\tCAPACITY\tFREE\tFREE AFTER",
        "VCPU\t12\t9\t1",
        "RUNS OUT\tHOSTS",
        "VCPU\t2",
    ]
    found = redsched("plan", "capacity", "VCPU=2", "--n-plus-one", "host", "--json").check().json()
    assert (found["places"], found["redundancy"]["checked"]) == (4, 2)
    [failing] = found["redundancy"]["failing"]
    assert failing["domain"] == "h1"
    assert (failing["unplaced"], failing["examples"][0]["claim_id"]) == (1, "db")
    lines = redsched("plan", "capacity", "VCPU=2", "--n-plus-one", "zone").check().output.splitlines()
    assert "1 of 2: without that zone, some claims would have no place" in lines
    assert "without az1:" in lines
    lines = redsched("plan", "capacity", "VCPU=2", "--n-plus-one", "label:row").check().output.splitlines()
    assert lines[-1] == "no host has a row, so none was left out"


def test_a_quota_is_shown(redsched: Redsched) -> None:
    redsched("quota", "set", "web", "VCPU=7").check()
    redsched("select", "VCPU=2", "--project", "web").check()
    assert "the project's quota allows 2 more\n" in redsched("plan", "capacity", "VCPU=2", "--project", "web").output


def test_a_drain_and_a_failure_are_planned_and_nothing_is_done(redsched: Redsched) -> None:
    redsched("select", "VCPU=3", "--host", "h2", "--host", "h1", "--id", "moves", "--exclude-host", "h1").check()
    redsched("select", "VCPU=1", "--host", "h2", "--id", "stays").check()
    before = redsched("claim", "list").output
    found = redsched("plan", "drain", "h2").check().output.splitlines()
    assert found[0] == "0 of 2 claims have another place, 2 could not leave"
    assert found[1].split() == ["UNPLACED", "CLAIM", "HOST", "REASON"]
    assert redsched("claim", "list").output == before
    redsched("claim", "release", "moves", "--force", "--yes").check()
    redsched("select", "VCPU=3", "--host", "h1", "--host", "h2", "--zone", "az2", "--id", "zoned").check()
    redsched("select", "VCPU=4", "--id", "free").check()
    lines = redsched("plan", "without", "h1").check().output.splitlines()
    assert lines[0] == "0 of 1 claim has another place, 1 would have no place"
    assert lines[2].startswith("free\th1\tnone of 2 hosts can take 4 VCPU: ")
    assert redsched("host", "show", "h1", "--json").json()["status"] == "enabled"
    redsched("plan", "drain", "h9").check_failed(4, "no host 'h9'")


def test_further_hosts_are_planned(redsched: Redsched, tmp_path: Path) -> None:
    fleet = tmp_path / "new.yaml"
    fleet.write_text(FLEET)
    assert redsched("plan", "with", str(fleet), "VCPU=2", "--zone", "az3").check().output.splitlines() == [
        "2 more hosts",
        "0 of the request fit now, 4 then",
        "CLASS\tCAPACITY\tFREE\tFREE AFTER",
        "MEMORY_MB\t16384\t16384\t16384",
        "VCPU\t20\t12\t20",
    ]
    assert redsched("plan", "with", str(fleet), "--json").check().json()["room"] is None
    fleet.write_text(FLEET.replace("'new-{n}', repeat: 2", "h1"))
    redsched("plan", "with", str(fleet)).check_failed(2, "host 'h1' is in cell c1 already")
    redsched("plan", "with", str(tmp_path / "none.yaml")).check_failed(2, "none.yaml")


@pytest.mark.usefixtures("needs_store")
def test_an_export_gives_the_same_plans(redsched: Redsched, tmp_path: Path) -> None:
    """It needs no store: a private one has it meanwhile."""
    redsched("server-group", "set", "web", "--policy", "anti-affinity").check()
    for name in ("web-1", "web-2"):
        redsched("select", "VCPU=1", "--id", name, "--server-group", "web").check()
    file, fleet = tmp_path / "cell.jsonl", tmp_path / "new.yaml"
    fleet.write_text(FLEET)
    redsched("export", "--output", str(file)).check()
    for words in (
        ("capacity", "VCPU=2", "--n-plus-one", "host"),
        ("drain", "h1"),
        ("without", "h1"),
        ("with", str(fleet), "VCPU=1"),
    ):
        live = redsched("plan", *words, "--json").check().output
        assert run("plan", *words, "--json", "--from", str(file)).check().output == live
    run("plan", "drain", "h1", "--from", str(tmp_path / "none")).check_failed(2, "none")
    run("plan", "drain", "h9", "--from", str(file)).check_failed(4, "no host 'h9'")


def test_the_plural_has_no_list(redsched: Redsched) -> None:
    assert redsched("plans", "drain", "h2").check().output.startswith("0 of 0 claims")
    assert "drain" in run("plans").output
    redsched("plan", "capacity").check_failed(2, "the request is empty")
    run("plan", "capacity", "VCPU=1", "--budget", "0").check_failed(2, "range")


def test_moves_are_planned_and_carried_out() -> None:
    """On hosts whose agents run the work. The room is there afterwards."""
    with up("--fleet", "2", "--no-agent") as started:

        def redsched(*words: str) -> Ran:
            return run(*words, environment={"REDSCHED_REDIS_URL": started.store})

        for number, other in enumerate(("sim-00001", "sim-00002")):
            redsched("host", "disable", other).check()
            redsched("select", "VCPU=4", "--id", f"vm-{number}", "--until", "active").check()
            redsched("host", "enable", other).check()
        asked = ("plan", "rebalance", "--for", "request", "VCPU=64")
        plan = redsched(*asked, "--json").check().json()
        [move] = plan["moves"]
        assert (plan["before"], plan["after"], move["gain"]) == (0, 1, f"{move['source']} takes one more")
        lines = redsched(*asked, "--apply").check().output.splitlines()
        assert lines[0] == "0 of 1 places fit now, 1 after 1 move"
        assert lines[1].split() == ["MOVE", "CLAIM", "FROM", "TO", "GAIN"]
        assert lines[-1] == f"{move['claim_id']} is active on {move['target']} (1 of 1)"
        redsched("select", "VCPU=64", "--host", move["source"]).check()
        done = redsched("plan", "rebalance", "--for", "policy", "--policy", "pack", "--apply", "--json").check().json()
        assert (done["aim"], done["moves"], done["applied"]) == ("policy", [], [])
        stuck = redsched("plan", "rebalance", "--for", "drain", "--empty", move["target"])
        assert stuck.check().output == "2 claims are on these hosts now, 2 after 0 moves\n"


@pytest.mark.usefixtures("needs_store")
def test_moves_are_planned_on_an_export(redsched: Redsched, tmp_path: Path) -> None:
    """But not carried out."""
    redsched("select", "VCPU=1", "--host", "h1", "--id", "db").check()
    file = tmp_path / "cell.jsonl"
    redsched("export", "--output", str(file)).check()
    asked = ("plan", "rebalance", "--for", "drain", "--empty", "h1", "--from", str(file))
    assert run(*asked).check().output == "1 claim is on these hosts now, 1 after 0 moves\n"
    run(*asked, "--apply").check_failed(2, "leave out --from")
    run("plan", "rebalance", "--for", "request", "--from", str(file)).check_failed(2, "make room for")
    run("plan", "rebalance", "--for", "drain", "--from", str(file)).check_failed(2, "add --empty HOST")
    run(*asked, "--policy", "pack").check_failed(2, "policy does not belong to rebalancing for drain")
    file.write_text("{")
    failed = run(*asked)
    failed.check_failed(2, str(file), "line 1")
    assert "written" not in failed.errors
    run("plan", "rebalance", "--for", "nothing").check_failed(2, "nothing")
