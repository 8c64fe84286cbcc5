"""`redsched aggregates`, `server-groups` and `pools`: made, changed in part, shown, listed, taken back."""

from pathlib import Path

import pytest

from tests.cli.conftest import Redsched


def test_an_aggregate_from_set_to_delete(redsched: Redsched) -> None:
    """What is not named stays; a key without a value goes, and so does a host that is taken out."""
    assert redsched("aggregates", "list").check().output == "no aggregates\n"
    made = redsched("aggregates", "set", "ssd", "--metadata", "disk=nvme", "--metadata", "old=1", "--host", "h1")
    assert made.check().output == "aggregate ssd is declared\n"
    changed = redsched("aggregates", "set", "ssd", "--metadata", "old=", "--host", "h2", "--json").check().json()
    assert changed == {"name": "ssd", "metadata": {"disk": "nvme"}, "hosts": ["h1", "h2"]}
    assert redsched("aggregates", "set", "ssd", "--not-host", "h1").check().output == "aggregate ssd is changed\n"
    assert redsched("aggregates", "show", "ssd").check().output == "ssd  1 hosts\nmetadata: disk=nvme\nhosts: h2\n"
    assert redsched("aggregates", "list").check().output.splitlines()[1].split() == ["ssd", "1", "disk=nvme"]
    assert "aggregates: ssd" in redsched("host", "h2").check().output
    redsched("aggregates", "delete", "ssd").check_failed(3, "ssd", "`redsched aggregates delete ssd --force`")
    assert redsched("aggregates", "delete", "ssd", "--force").check().output == "aggregate ssd is taken back\n"
    redsched("aggregates", "show", "ssd").check_failed(4, "ssd")


def test_a_server_group_from_set_to_delete(redsched: Redsched) -> None:
    redsched("server-groups", "set", "web", "--policy", "anti-affinity", "--count-by", "label:rack").check()
    redsched("select", "VCPU=1", "--server-group", "web", "--host", "h2").check()
    shown = redsched("server-groups", "show", "web").check().output
    assert "web  anti-affinity by host, at most 1  1 members" in shown
    assert [line.split() for line in shown.splitlines()[2:]] == [
        ["host", "h2", "1"],
        ["zone", "az2", "1"],
        ["label:rack", "r4", "1"],
    ]
    assert (
        redsched("server-groups", "set", "web", "--max-per-host", "2").check().output == "server group web is changed\n"
    )
    [listed] = redsched("server-groups", "list", "--json").check().json()["server_groups"]
    assert (listed["policy"], listed["max_per_host"], listed["members"]) == ("anti-affinity", 2, 1)
    redsched("server-groups", "set", "web", "--by", "zone").check_failed(3, "1 members")
    redsched("server-groups", "delete", "web").check_failed(3, "1 members", "force")
    redsched("server-groups", "delete", "web", "--force").check()


def test_a_pool_from_a_file_to_delete(redsched: Redsched, tmp_path: Path) -> None:
    """A file gives the whole of it; options change a part."""
    file = tmp_path / "seats.yaml"
    file.write_text("inventories: {CUSTOM_SEAT: {total: 10, reserved: 2}}\naggregates: [licensed]\n")
    redsched("pools", "set", "seats", "--request", str(file)).check()
    redsched("pools", "set", "seats", "CUSTOM_SEAT=20", "--trait", "CUSTOM_FAST").check()
    found = redsched("pools", "show", "seats", "--json").check().json()
    slot = found["slots"]["CUSTOM_SEAT"]
    assert (slot["total"], slot["reserved"], found["traits"], found["aggregates"]) == (
        20,
        2,
        ["CUSTOM_FAST"],
        ["licensed"],
    )
    assert "seats  cell c1  for licensed" in redsched("pools", "show", "seats").check().output
    assert redsched("pools", "list").check().output.splitlines()[1].split() == [
        "seats",
        "c1",
        "CUSTOM_SEAT=18",
        "licensed",
    ]
    assert redsched("pools", "delete", "seats").check().output == "pool seats is taken back\n"


BAD: dict[str, tuple[int, tuple[str, ...], str]] = {
    "aggregate of an unknown host": (4, ("aggregates", "set", "a", "--host", "h9"), "h9"),
    "metadata without a key": (2, ("aggregates", "set", "a", "--metadata", "x"), "NAME=VALUE"),
    "aggregate not a name": (2, ("aggregates", "show", "a b"), "a b"),
    "group without a policy": (2, ("server-groups", "set", "a"), "policy"),
    "group by nonsense": (2, ("server-groups", "set", "a", "--policy", "affinity", "--by", "rack"), "rack"),
    "pool without inventories": (2, ("pools", "set", "a"), "inventories"),
    "pool of an unknown class": (2, ("pools", "set", "a", "SEATS=1"), "SEATS"),
    "pool in an unknown cell": (4, ("pools", "set", "a", "CUSTOM_SEAT=1", "--cell", "c9"), "c9"),
    "unknown pool": (4, ("pools", "delete", "a"), "'a'"),
    "unknown verb": (2, ("pools", "make", "a"), "make"),
}


@pytest.mark.parametrize(("exit_code", "arguments", "word"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said_in_one_line(
    redsched: Redsched, exit_code: int, arguments: tuple[str, ...], word: str
) -> None:
    redsched(*arguments).check_failed(exit_code, word)
