"""Options and request files of the command line become the same request that REST would read."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from redsched.cli.commands import entries
from redsched.cli.groups import load
from redsched.cli.request_options import RequestOptions, request_of
from redsched.errors import InvalidRequest
from redsched.model import (
    CpuPolicy,
    Group,
    Hints,
    Numa,
    NumaAffinity,
    NumaCell,
    PciDevices,
    Request,
    Spread,
)
from tests.cli.conftest import Redsched

BOTH_LINKS = True


GANG = """
members:
  - {name: db, count: 2, resources: {VCPU: 1}}
  - {name: web, resources: {VCPU: 2}, zone: az1}
relations: [{type: apart, members: [db]}]
"""

READ: dict[str, tuple[dict[str, Any], Request]] = {
    "member_of": (
        {"member_of": ["a,b", "c"], "not_member_of": ["d"]},
        Request({"VCPU": 1}, member_of=(frozenset("ab"), frozenset("c")), not_member_of=frozenset("d")),
    ),
    "spread": (
        {"spread": ["zone", "label:rack=2"], "soft_spread": ["host=3"]},
        Request({"VCPU": 1}, spread=(Spread("zone"), Spread("label:rack", 2), Spread("host", 3, hard=False))),
    ),
    "group": (
        {"group": ["{name: cpus, resources: {PCPU: 2}}", '{"name": "a", "resources": {"VCPU": 1}}']},
        Request({"VCPU": 1}, groups=(Group("cpus", {"PCPU": 2}), Group("a", {"VCPU": 1}))),
    ),
    "numa": (
        {"numa": "{cells: [{cpus: 4, memory_mb: 8192}], policy: dedicated}"},
        Request({"VCPU": 1}, numa=Numa((NumaCell(4, 8192),), CpuPolicy.DEDICATED)),
    ),
    "pci": (
        {"pci": ["CUSTOM_NIC=2:required", "CUSTOM_GPU=1"]},
        Request({"VCPU": 1}, pci=(PciDevices("CUSTOM_NIC", 2, NumaAffinity.REQUIRED), PciDevices("CUSTOM_GPU"))),
    ),
    "query": ({"query": '[">=", "$free.VCPU", 8]'}, Request({"VCPU": 1}, query=(">=", "$free.VCPU", 8))),
    "hint": (
        {"hint": ["same_host=a", "same_host=b", "build_near_host_ip=10.0.0.1", "cidr=/16"]},
        Request({"VCPU": 1}, hints=Hints(frozenset("ab"), build_near_host_ip="10.0.0.1", cidr="/16")),
    ),
    "words": (
        {"server_group": "web", "property": ["os_type=linux"], "label": ["cores=>= 8"], "project": "p", "count": 2},
        Request(
            {"VCPU": 1},
            server_group="web",
            properties={"os_type": "linux"},
            labels={"cores": ">= 8"},
            project="p",
            count=2,
        ),
    ),
}

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "group not JSON": ({"group": ["{name: "]}, "--group"),
    "group of an unknown class": ({"group": ["{name: a, resources: {VCPUS: 1}}"]}, "VCPUS"),
    "group given twice": ({"group": ["{name: a, name: b}"]}, "twice"),
    "numa not a mapping": ({"numa": "[4]"}, "numa"),
    "query not a list": ({"query": "free"}, "query"),
    "skew not a number": ({"spread": ["zone=x"]}, "max_skew"),
    "spread by nonsense": ({"spread": ["rack"]}, "rack"),
    "pci without a count": ({"pci": ["CUSTOM_NIC"]}, "CUSTOM_NIC"),
    "pci near nothing": ({"pci": ["CUSTOM_NIC=1:near"]}, "near"),
    "hint unknown": ({"hint": ["rack=a"]}, "hints.rack"),
    "cidr twice": ({"hint": ["cidr=/8", "cidr=/9"]}, "twice"),
    "no such file": ({"request": "/nowhere.yaml"}, "/nowhere.yaml"),
}


@pytest.mark.parametrize(("options", "request_"), READ.values(), ids=READ)
def test_options_make_the_request(options: dict[str, Any], request_: Request) -> None:
    assert request_of(RequestOptions(resources=["VCPU=1"], **options)) == request_


@pytest.mark.parametrize(("options", "word"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidRequest, match=word) as raised:
        request_of(RequestOptions(resources=["VCPU=1"], **options))
    assert "\n" not in raised.value.detail


def test_asking_for_nothing_says_what_can_be_asked_for() -> None:
    with pytest.raises(InvalidRequest, match=r"CLASS=AMOUNT.*--request"):
        request_of(RequestOptions())


def test_amounts_take_units_in_options_and_in_files(tmp_path: Path) -> None:
    options = RequestOptions(
        resources=["VCPU=2", "MEMORY_MB=4Gi"],
        group=["{name: a, resources: {DISK_GB: 1Ti}}"],
        numa="{cells: [{cpus: 1, memory_mb: 1Gi}], page_size_kb: 2Mi}",
    )
    made = request_of(options)
    assert made.resources == {"VCPU": 2, "MEMORY_MB": 4096}
    assert made.groups[0].resources == {"DISK_GB": 1024}
    assert made.numa == Numa((NumaCell(1, 1024),), page_size_kb=2048)
    file = tmp_path / "request.yaml"
    file.write_text("{resources: {MEMORY_MB: 1.5Gi}, lease_s: 1h30m, properties: {MEMORY_MB: 4Gi}}")
    made = request_of(RequestOptions(request=str(file)))
    assert (made.resources, made.lease_s, made.properties) == ({"MEMORY_MB": 1536}, 5400, {"MEMORY_MB": "4Gi"})
    file.write_text("resources: {MEMORY_MB: 4G}")
    with pytest.raises(InvalidRequest, match="ambiguous"):
        request_of(RequestOptions(request=str(file)))


def test_options_come_on_top_of_a_file(tmp_path: Path) -> None:
    """The file may be YAML or JSON; fields that no option sets are as in the file."""
    body = {"resources": {"VCPU": 4}, "zone": ["az1"], "count": 3, "claim": False}
    for name, text in (
        ("a.json", json.dumps(body)),
        ("a.yaml", "{resources: {VCPU: 4}, zone: [az1], count: 3, claim: false}"),
    ):
        (tmp_path / name).write_text(text)
        found = request_of(RequestOptions(request=str(tmp_path / name), zone=["az2"]), alternates=None)
        assert found == Request({"VCPU": 4}, zones=frozenset(("az2",)), count=3, claim=False)


@pytest.mark.parametrize(
    "text", ["- VCPU", "{resources: {VCPU: 1}, resources: {VCPU: 2}}", "a: [", "{nix: 1, groups: []}"]
)
def test_a_file_that_is_no_request_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(InvalidRequest) as raised:
        request_of(RequestOptions(request="-"))
    assert "\n" not in raised.value.detail


def test_a_gang_is_claimed_from_a_file(redsched: Redsched, tmp_path: Path) -> None:
    """The table and the JSON show the member of each place; explain takes the same file."""
    file = tmp_path / "gang.yaml"
    file.write_text(GANG)
    shown = redsched("select", "--request", str(file), "--dry-run").check().output.splitlines()
    assert shown[0].split() == ["CLAIM", "MEMBER", "HOST", "AMOUNTS", "ALTERNATES", "TOKEN"]
    found = redsched("select", "--request", str(file), "--json").check().json()["selections"]
    assert [one["member"] for one in found] == ["db", "db", "web"]
    assert (found[2]["host"], {found[0]["host"], found[1]["host"]}) == ("h1", {"h1", "h2"})
    redsched("explain", "--request", str(file)).check()
    assert len(redsched("claim", "list", "--json").check().json()["claims"]) == 3


@pytest.mark.parametrize(
    ("command", "option", "said"),
    [
        ("select", "--require", "Traits that the host must have. Repeatable."),
        ("explain", "--project", "The project that the claims belong to. Quotas apply to projects."),
        ("server-group set", "--by", "What members share or do not share: host, zone or label:<key>."),
        ("shared-pool set", "--cell", "The cell whose hosts may use the pool."),
        ("host drain", "--move", "Move its claims to other hosts, a few each second."),
    ],
)
def test_an_option_is_described_as_the_field_that_it_sets(command: str, option: str, said: str) -> None:
    """The text comes from the OpenAPI document, and is not repeated in the command line's code."""
    parameters = load(command, entries()[command]).params
    assert [one.help for one in parameters if option in one.opts] == [said]
    sources = Path("redsched/cli").rglob("*.py")
    assert not any(said.removesuffix(" Repeatable.") in one.read_text() for one in sources)
