"""Fleet files: the reports they become, and one clear line for each mistake in them."""

import re
from pathlib import Path

import pytest

from redsched.agent.collectors.fleet import MAX_HOSTS, fleet, parse_fleet, read_fleet, simulated
from redsched.cli.verbs import agent as agent_command
from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory, Pool

ROOT = Path(__file__).parents[2]
HOST = "name: a, inventories: {VCPU: {total: 4}}"


def test_a_described_host_becomes_a_report() -> None:
    text = """
    hosts:
      - name: gpu-1
        cell: c2
        zone: az1
        labels: {rack: r4}
        traits: [HW_CPU_X86_AVX2]
        metrics: {cpu.percent: 12.5}
        lease_s: 60
        external: {VCPU: 1}
        inventories:
          VCPU: {total: 64, reserved: 2, allocation_ratio: 4.0}
          MEMORY_MB: {total: 262144, min_unit: 64, max_unit: 65536, step_size: 64}
    """
    expected = HostReport(
        "gpu-1",
        {
            "VCPU": Inventory(64, reserved=2, allocation_ratio=4.0),
            "MEMORY_MB": Inventory(262144, min_unit=64, max_unit=65536, step_size=64),
        },
        cell="c2",
        zone="az1",
        labels={"rack": "r4"},
        traits=frozenset({"HW_CPU_X86_AVX2"}),
        metrics={"cpu.percent": 12.5},
        external={"VCPU": 1},
        lease_s=60,
    )
    assert parse_fleet(text) == [expected]


def test_pools_become_pools_with_their_parents_traits_and_external_usage() -> None:
    text = """
    hosts:
      - name: gpu-{n}
        repeat: 2
        inventories: {DISK_GB: {total: 900}}
        external: {gpu0/CUSTOM_GPU_MILLI: 250}
        pools:
          numa0: {inventories: {PCPU: {total: 16}, VCPU: {total: 8, allocation_ratio: 4.0}}}
          gpu0:
            {parent: numa0, traits: [CUSTOM_GPU_T4], inventories: {CUSTOM_GPU_MILLI: {total: 1000}}, device: GPU-5fd4}
    """
    pools = {
        "numa0": Pool({"PCPU": Inventory(16), "VCPU": Inventory(8, allocation_ratio=4.0)}),
        "gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, "numa0", frozenset({"CUSTOM_GPU_T4"}), "GPU-5fd4"),
    }
    external = {"gpu0/CUSTOM_GPU_MILLI": 250}
    expected = [
        HostReport(name, {"DISK_GB": Inventory(900)}, pools=pools, external=external) for name in ("gpu-1", "gpu-2")
    ]
    assert parse_fleet(text) == expected


def test_amounts_and_leases_take_units() -> None:
    (found,) = parse_fleet(
        "hosts: [{name: h, lease_s: 1m, inventories: {MEMORY_MB: {total: 256Gi, reserved: 512Mi}},"
        " pools: {numa0: {inventories: {MEMORY_MB: {total: 1Gi}}}}, external: {numa0/MEMORY_MB: 1Gi}}]"
    )
    assert found.inventories == {"MEMORY_MB": Inventory(262_144, reserved=512)}
    assert found.pools["numa0"].inventories == {"MEMORY_MB": Inventory(1024)}
    assert (found.external, found.lease_s) == ({"numa0/MEMORY_MB": 1024}, 60)
    with pytest.raises(InvalidRequest, match=r"entry 1 \(h\): MEMORY_MB: the unit 'G' is ambiguous"):
        parse_fleet("hosts: [{name: h, inventories: {MEMORY_MB: {total: 256G}}}]")


def test_repeated_hosts_are_numbered_from_one() -> None:
    text = "hosts: [{name: 'r1-{n}-x', repeat: 3, inventories: {VCPU: {total: 4}}}, {" + HOST + "}]"
    assert [report.name for report in parse_fleet(text)] == ["r1-1-x", "r1-2-x", "r1-3-x", "a"]


def test_anchors_and_merges_of_yaml_work() -> None:
    text = "hosts: [&first {" + HOST + ", zone: az1}, {<<: *first, name: b}]"
    assert [(report.name, report.zone) for report in parse_fleet(text)] == [("a", "az1"), ("b", "az1")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "it must have `hosts:`"),
        ("- a", "it must have `hosts:`"),
        ("hosts: 5", "it must have `hosts:`"),
        ("hosts: []", "`hosts` is empty"),
        ("hosts: [{" + HOST + "}]\nracks: []", "unknown key 'racks' beside `hosts`"),
        ("hosts: [", "not YAML"),
        ("\x00", "not YAML"),
        ("hosts: [{name: !!python/object:os.system a}]", "not YAML: could not determine a constructor"),
        ("hosts: [" * 3000, "nested too deeply"),
        ("hosts: [{name: a, name: b}]", "'name' is given twice"),
        ("hosts: [7]", "entry 1: an entry must be a mapping (key: value), not 7"),
        ("hosts: [{inventories: {}}]", "entry 1: `name` is missing"),
        ("hosts: [{" + HOST + "}, {name: b}]", "entry 2 (b): `inventories` is missing"),
        ("hosts: [{" + HOST + "}, {" + HOST + "}]", "entry 2: host 'a' is given twice"),
        ("hosts: [{" + HOST + ", zones: az1}]", "entry 1 (a): unknown key 'zones': use cell, external"),
        ("hosts: [{" + HOST + ", pools: [numa0]}]", "entry 1 (a): pools must be a mapping"),
        (
            "hosts: [{" + HOST + ", pools: {numa0: 4}}]",
            "pool numa0 must be a mapping, such as {inventories: {VCPU: {total: 8}}}, not 4",
        ),
        ("hosts: [{" + HOST + ", pools: {'a/b': {}}}]", "entry 1 (a): pool 'a/b' is not a name"),
        ("hosts: [{" + HOST + ", pools: {a: {}, a: {}}}]", "'a' is given twice"),
        ("hosts: [{" + HOST + ", pools: {a: {total: 4}}}]", "pool a: unknown key 'total': use device, inventories"),
        (
            "hosts: [{" + HOST + ", pools: {a: {parent: b}}}]",
            "pool 'a' has the parent 'b', which is not a pool of this host",
        ),
        ("hosts: [{" + HOST + ", pools: {a: {parent: b}, b: {parent: a}}}]", "parents must form a tree"),
        ("hosts: [{" + HOST + ", pools: {a: {parent: 7}}}]", "pool a: parent must be text, not 7"),
        ("hosts: [{" + HOST + ", pools: {a: {device: 7}}}]", "pool a: device must be text, not 7"),
        ("hosts: [{" + HOST + ", pools: {a: {device: a b}}}]", "pool a: device 'a b' is not a device id"),
        ("hosts: [{" + HOST + ", pools: {a: {traits: [FAST]}}}]", "pool a: unknown trait 'FAST'"),
        ("hosts: [{" + HOST + ", pools: {a: {inventories: {X: {total: 1}}}}}]", "pool a: unknown resource class 'X'"),
        (
            "hosts: [{" + HOST + ", pools: {a: {inventories: {PCPU: {}}}}}]",
            "pool a: inventory PCPU: `total`",
        ),
        ("hosts: [{" + HOST + ", pools: {a: {}}, external: {a/PCPU: 1}}]", "external has 'a/PCPU'"),
        ("hosts: [{" + HOST + ", claims: []}]", "entry 1 (a): unknown key 'claims'"),
        ("hosts: [{name: 7, inventories: {VCPU: {total: 4}}}]", "name must be text, not 7: put it in quotes"),
        ("hosts: [{name: a b, inventories: {VCPU: {total: 4}}}]", "entry 1 (a b): host 'a b' is not a name"),
        ("hosts: [{" + HOST + ", zone: 1}]", "zone must be text, not 1"),
        ("hosts: [{" + HOST + ", zone: 'a/b'}]", "zone 'a/b' is not a name"),
        ("hosts: [{" + HOST + ", labels: [a]}]", "labels must be a mapping"),
        ("hosts: [{" + HOST + ", labels: {rack: 4}}]", "label 'rack' must be text, not 4: put it in quotes"),
        ("hosts: [{" + HOST + ", labels: {rack: 'ä'}}]", "label 'rack' has the value 'ä'"),
        ("hosts: [{" + HOST + ", traits: HW_CPU_X86_AVX2}]", "traits must be a list"),
        ("hosts: [{" + HOST + ", traits: [FAST]}]", "unknown trait 'FAST'"),
        ("hosts: [{" + HOST + ", metrics: {load: high}}]", "metric 'load' must be a number, not 'high'"),
        ("hosts: [{" + HOST + ", metrics: {load: .nan}}]", "metric 'load' must be a number, not nan"),
        ("hosts: [{" + HOST + ", lease_s: 1w}]", "lease_s '1w' has the unit 'w'"),
        ("hosts: [{" + HOST + ", lease_s: yes}]", "lease_s must be a whole number"),
        ("hosts: [{" + HOST + ", external: {VCPU: lots}}]", "external VCPU must be a whole number"),
        ("hosts: [{" + HOST + ", external: {DISK_GB: 1}}]", "external has 'DISK_GB'"),
        ("hosts: [{name: a, inventories: [VCPU]}]", "inventories must be a mapping"),
        ("hosts: [{name: a, inventories: {VCPU: 4}}]", "inventory VCPU must be a mapping, such as {total: 4}, not 4"),
        ("hosts: [{name: a, inventories: {MEMORY_MB: 64Gi}}]", "must be a mapping, such as {total: 64Gi}, not '64Gi'"),
        ("hosts: [{name: a, inventories: {VCPU: [4]}}]", "such as {total: 8}, not [4]"),
        ("hosts: [{name: a, inventories: {VCPU: {}}}]", "inventory VCPU: `total` is missing"),
        ("hosts: [{name: a, inventories: {CPUS: {total: 4}}}]", "unknown resource class 'CPUS'"),
        ("hosts: [{name: a, inventories: {VCPU: {total: -4}}}]", "inventory VCPU: total must be a whole number"),
        ("hosts: [{name: a, inventories: {VCPU: {total: 1.5}}}]", "inventory VCPU: total must be a whole number"),
        ("hosts: [{name: a, inventories: {VCPU: {total: 4, ratio: 2}}}]", "inventory VCPU: unknown key 'ratio'"),
        (
            "hosts: [{name: a, inventories: {VCPU: {total: 4, step_size: 0}}}]",
            "step_size must be a whole number from 1",
        ),
        (
            "hosts: [{name: a, inventories: {VCPU: {total: 4, allocation_ratio: big}}}]",
            "inventory VCPU: allocation_ratio must be a number, not 'big'",
        ),
        ("hosts: [{" + HOST + ", repeat: 2}]", "with `repeat`, the name must contain {n}"),
        ("hosts: [{name: 'a{n}', inventories: {VCPU: {total: 4}}}]", "{n} in a name needs `repeat`"),
        ("hosts: [{name: 'a{n}', repeat: 0, inventories: {VCPU: {total: 4}}}]", "repeat must be a whole number from 1"),
        ("hosts: [{name: 'a{n}', repeat: 9999999, inventories: {VCPU: {total: 4}}}]", "repeat must be a whole number"),
    ],
)
def test_what_is_wrong_is_reported_in_one_line_that_names_the_entry(text: str, expected: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_fleet(text)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_fleet_file_has_a_largest_size() -> None:
    entry = "{name: '%s{n}', repeat: 60000, inventories: {VCPU: {total: 4}}}"
    with pytest.raises(InvalidRequest, match=f"entry 2: .*at most {MAX_HOSTS}"):
        parse_fleet(f"hosts: [{entry % 'a'}, {entry % 'b'}]")


def test_the_fleet_files_of_the_documentation_can_be_read() -> None:
    """The second one describes machines with two NUMA nodes, each with four GPUs."""
    blocks = re.findall(r"```yaml\n(hosts:.*?)```", (ROOT / "docs" / "agent.md").read_text(), re.DOTALL)
    simple, with_gpus = (parse_fleet(block) for block in blocks)
    assert (len(simple), len(with_gpus)) == (40, 2)
    host = with_gpus[0]
    parents = {name: pool.parent for name, pool in host.pools.items()}
    assert parents == {"numa0": "", "numa1": ""} | {f"gpu{n}": f"numa{n // 4}" for n in range(8)}
    slots = host.slots()
    capacities = {slot: slots[slot].capacity for slot in ("numa1/VCPU", "numa1/PCPU", "gpu7/CUSTOM_GPU_MILLI")}
    assert capacities == {"numa1/VCPU": 32, "numa1/PCPU": 24, "gpu7/CUSTOM_GPU_MILLI": 1000}
    assert slots["numa0/CUSTOM_HUGE_PAGES_2048KB"].total == 32768
    assert host.external == {"gpu7/CUSTOM_GPU_MILLI": 500}
    assert host.pools["gpu0"].traits == {"CUSTOM_GPU_A100"}


def test_errors_of_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    with pytest.raises(InvalidRequest, match=f"fleet file {path} cannot be read: No such file"):
        read_fleet(path)
    path.write_bytes(b"hosts: \xff\xfe")
    with pytest.raises(InvalidRequest, match="it is not UTF-8 text"):
        read_fleet(path)
    path.write_text("hosts: []")
    with pytest.raises(InvalidRequest, match=f"fleet file {path}: `hosts` is empty"):
        read_fleet(path)
    path.write_text("hosts: [{" + HOST + "}]")
    assert fleet(str(path)) == read_fleet(path)


def test_a_number_is_a_simulated_fleet() -> None:
    reports = fleet("10")
    assert reports == simulated(10)
    assert [report.name for report in reports[:2]] == ["sim-00001", "sim-00002"]
    assert {report.zone for report in reports} == {"az1", "az2", "az3", "az4"}
    capacities = {slot: inventory.capacity for slot, inventory in reports[0].inventories.items()}
    assert capacities == {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000}
    for count in ("0", "9999999"):
        with pytest.raises(InvalidRequest, match="1 to 100000 hosts"):
            fleet(count)


def test_the_lease_of_the_settings_is_that_of_hosts_without_one_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("hosts: [{" + HOST + "}, {name: b, lease_s: 2m, inventories: {VCPU: {total: 1}}}]")
    asked = list[list[HostReport]]()
    monkeypatch.setenv("REDSCHED_LEASE_S", "90")
    monkeypatch.setenv("REDSCHED_REDIS_URL", "redis://127.0.0.1:1")
    monkeypatch.setattr(agent_command, "run_agent", lambda settings, store, hosts: asked.append(hosts))
    monkeypatch.setattr(agent_command, "run_until_ended", lambda work: None)
    for fleet_option in (str(path), "2"):
        agent_command.agent(fleet=fleet_option)
    assert [{report.name: report.lease_s for report in hosts} for hosts in asked] == [
        {"a": 90, "b": 120},
        {"sim-00001": 90, "sim-00002": 90},
    ]
