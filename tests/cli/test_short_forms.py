"""`GPU=2`, `GPU=0.5` and `--same numa` make the parts of a request, and unknown classes name those of the fleet."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from redsched.cli.request_options import RequestOptions, request_of
from redsched.cli.short_forms import Same
from redsched.errors import InvalidRequest
from redsched.model import NUMA_NODE, Group, HostReport, Inventory, Request
from redsched.model.hosts import Pool
from tests.cli.conftest import Redsched, report_all

BOTH_LINKS = True
MILLI, MEMORY, NIC = "CUSTOM_GPU_MILLI", "CUSTOM_GPU_MEMORY_MB", "SRIOV_NET_VF"
WHOLE = tuple(Group(f"gpu{number}", {MILLI: 1000}) for number in range(2))
NODE = Group("node", required=frozenset((NUMA_NODE,)))

MADE: dict[str, tuple[list[str], Same | None, Request]] = {
    "whole GPUs": (["GPU=2", "VCPU=8"], None, Request({"VCPU": 8}, groups=WHOLE)),
    "half a GPU": (["GPU=0.5"], None, Request(groups=(Group("gpu0", {MILLI: 500}),))),
    "an eighth": (["GPU=.125"], None, Request(groups=(Group("gpu0", {MILLI: 125}),))),
    "trailing zeros": (["GPU=0.2500"], None, Request(groups=(Group("gpu0", {MILLI: 250}),))),
    "memory of each GPU": (
        ["GPU=2", f"{MEMORY}=16Gi"],
        None,
        Request(groups=tuple(Group(f"gpu{number}", {MILLI: 1000, MEMORY: 16384}) for number in range(2))),
    ),
    "memory without the short form": ([f"{MEMORY}=1Gi"], None, Request({MEMORY: 1024})),
    "one node": (
        ["GPU=2", "VCPU=8", "CUSTOM_HUGE_PAGES_2048KB=4"],
        Same.NUMA,
        Request(
            {"VCPU": 8, "CUSTOM_HUGE_PAGES_2048KB": 4},
            groups=(NODE, *WHOLE),
            same_subtree=(frozenset(("node", "gpu0", "gpu1")),),
        ),
    ),
    "other devices": (
        [f"{NIC}=2", "CUSTOM_SCRATCH_GB=100", "MEMORY_MB=512"],
        Same.NUMA,
        Request(
            {"MEMORY_MB": 512},
            groups=(
                NODE,
                Group("scratch_gb0", {"CUSTOM_SCRATCH_GB": 100}),
                Group("sriov_net_vf0", {NIC: 1}),
                Group("sriov_net_vf1", {NIC: 1}),
            ),
            same_subtree=(frozenset(("node", "scratch_gb0", "sriov_net_vf0", "sriov_net_vf1")),),
        ),
    ),
}

REFUSED: dict[str, tuple[list[str], Same | None, str]] = {
    "no GPU": (["GPU=0"], None, "whole GPUs, such as 2, or a share of one, such as 0.5 or 0.125, not '0'"),
    "nothing of a GPU": (["GPU=0.0"], None, "not '0.0'"),
    "one and a half": (["GPU=1.5"], None, "not '1.5'"),
    "finer than a thousandth": (["GPU=0.1234"], None, "not '0.1234'"),
    "with a unit": (["GPU=1Gi"], None, "not '1Gi'"),
    "a word": (["GPU=all"], None, "not 'all'"),
    "too many": (["GPU=65"], None, "GPU=65 would be 65 groups: a request has at most 64"),
    "too many devices": ([f"{NIC}=65"], Same.NUMA, "SRIOV_NET_VF=65 would be 65 groups"),
    "twice": (["GPU=1", "GPU=2"], None, "'GPU' is given twice"),
    "the same of nothing": (["VCPU=1"], Same.NUMA, "--same numa is about devices: give some, such as GPU=2"),
}


@pytest.mark.parametrize(("amounts", "same", "made"), MADE.values(), ids=MADE)
def test_short_forms_make_groups(amounts: list[str], same: Same | None, made: Request) -> None:
    assert request_of(RequestOptions(resources=amounts, same=same)) == made


@pytest.mark.parametrize(("amounts", "same", "word"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_short_form_is_refused_with_the_rule(amounts: list[str], same: Same | None, word: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(word)):
        request_of(RequestOptions(resources=amounts, same=same))


def test_groups_of_ones_own_join_them() -> None:
    cpus = "{name: cpus, resources: {VCPU: 4}}"
    made = request_of(RequestOptions(resources=["GPU=1"], group=[cpus], same=Same.NUMA))
    assert made.groups == (NODE, WHOLE[0], Group("cpus", {"VCPU": 4}))
    assert made.same_subtree == (frozenset(("node", "gpu0", "cpus")),)
    with pytest.raises(InvalidRequest, match="gpu0"):
        request_of(RequestOptions(resources=["GPU=1"], group=["{name: gpu0, resources: {VCPU: 4}}"]))


def reports() -> list[HostReport]:
    """Return two boxes of two NUMA nodes with two GPUs and a NIC each, one without nodes, and five machines."""
    node = Pool({"VCPU": Inventory(32), "MEMORY_MB": Inventory(131_072)}, traits=frozenset((NUMA_NODE,)))
    gpus = {f"gpu{number}": Pool({MILLI: Inventory(1000)}) for number in range(4)}
    pools = {f"numa{number}": node for number in range(2)}
    pools |= {name: replace(gpu, parent=f"numa{number // 2}") for number, (name, gpu) in enumerate(gpus.items())}
    pools |= {f"nic{number}": Pool({NIC: Inventory(8)}, parent=f"numa{number}") for number in range(2)}
    plain = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262_144)}
    boxes = [HostReport(f"box-{number}", {}, lease_s=3600, pools=pools) for number in (1, 2)]
    boxes += [HostReport("box-3", plain, lease_s=3600, pools=gpus)]
    return boxes + [HostReport(f"ci-{number}", plain, lease_s=3600) for number in range(1, 6)]


@pytest.fixture
def lab(store: str, redsched: Redsched) -> Redsched:
    """Return the function that runs commands, on a store with the boxes and machines too."""
    report_all(store, reports())
    return redsched


def examples() -> dict[str, list[str]]:
    """Return the commands at the top of the page of constraints, by what each says that it takes."""
    page = Path("docs/constraints.md").read_text()
    block = page.partition("```sh\n")[2].partition("```")[0]
    return {line.partition("# ")[2]: shlex.split(line.partition("#")[0])[1:] for line in block.splitlines()}


def test_the_examples_are_placed_as_they_say(lab: Redsched) -> None:
    taken = {said.partition(":")[0]: slots(lab, command) for said, command in examples().items()}
    assert [said.split(",")[0] for said in taken] == [
        "two GPUs of one NUMA node",
        "a whole box",
        "one whose CPUs are in two nodes",
        "half a GPU",
        "a GPU with its NIC",
    ]
    pair, box, nodes, half, nic = taken.values()
    assert sorted(pair.values()) == [8, 1000, 1000, 32_768]
    assert len({node_of(slot) for slot in pair if MILLI in slot}) == 1
    assert (box["VCPU"], box["MEMORY_MB"], sum(MILLI in slot for slot in box)) == (64, 245_760, 4)
    assert (nodes["numa0/VCPU"], nodes["numa1/VCPU"], sum(MILLI in slot for slot in nodes)) == (32, 32, 4)
    assert [amount for slot, amount in half.items() if MILLI in slot] == [500]
    devices = [slot for slot in nic if MILLI in slot or NIC in slot]
    assert (len(devices), len({node_of(slot) for slot in devices})) == (2, 1)


def slots(lab: Redsched, command: Sequence[str]) -> dict[str, int]:
    """Return what a command would take, on which box does not matter."""
    [one] = lab(*command, "--dry-run", "--json").check().json()["selections"]
    return dict(one["slots"])


def node_of(slot: str) -> int:
    """Return the node of a GPU, of which each has two, or of a NIC."""
    device, number = re.fullmatch(r"(gpu|nic)(\d)/.*", slot).groups()  # type: ignore[union-attr]  # it matches
    return int(number) // 2 if device == "gpu" else int(number)


@pytest.mark.parametrize("command", [("select",), ("explain",), ("plan", "capacity")])
def test_a_shown_request_can_be_sent_as_it_is(lab: Redsched, tmp_path: Path, command: tuple[str, ...]) -> None:
    asked = ("GPU=2", "VCPU=8", "--same", "numa", "--project", "web")
    shown = lab(*command, *asked, "--show-request").check().output
    assert json.loads(shown)["same_subtree"] == [["node", "gpu0", "gpu1"]]
    assert not lab("claim", "list", "--json").check().json()["claims"]
    file = tmp_path / "request.json"
    file.write_text(shown)
    assert lab(*command, "--request", str(file), "--show-request").check().output == shown
    lab(*command, "--request", str(file)).check()


@pytest.mark.parametrize("payload", ['{"argv": ["true"]}', "{}", "[]", '""', "false"])
def test_a_shown_request_has_the_payload(redsched: Redsched, payload: str) -> None:
    shown = redsched("select", "VCPU=1", "--payload", payload, "--show-request").check().json()
    assert shown == {"resources": {"VCPU": 1}, "payload": json.loads(payload)}


def test_a_job_takes_short_forms(lab: Redsched) -> None:
    shown = lab("run", "GPU=0.5", "VCPU=2", "--show-request", "--", "true").check().json()
    assert shown == {"resources": {"VCPU": 2}, "groups": [{"name": "gpu0", "resources": {MILLI: 500}}]}
    lab("run", "GPU_MILLI=500", "--", "true").check_failed(2, "did you mean CUSTOM_GPU_MILLI or GPU?")


def test_commands_that_plan_take_short_forms(lab: Redsched) -> None:
    """Two boxes have two nodes with two GPUs each; the third has no nodes, and no node has three GPUs."""
    found = lab("plan", "capacity", "GPU=2", "--same", "numa", "--json").check().json()
    assert found["places"] == 4
    explained = lab("explain", "GPU=3", "--same", "numa", "--json")
    assert (explained.exit_code, explained.json()["fits"]) == (1, 0)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("GPU_MILLI=500", "'GPU_MILLI': did you mean CUSTOM_GPU_MILLI or GPU? There are CUSTOM_GPU_MILLI, "),
        ("gpu=1", "'gpu': did you mean GPU"),
        ("MEM=4Gi", "'MEM': did you mean MEMORY_MB? There are MEMORY_MB, "),
        ("vcpu=1", "'vcpu': did you mean VCPU? There are VCPU, "),
        ("VPCU=1", "'VPCU': did you mean VCPU? There are VCPU, "),
        ("XYZ=1", "'XYZ': there are "),
    ],
)
@pytest.mark.parametrize("command", ["select", "explain"])
def test_a_class_that_is_none_is_refused_with_those_of_the_fleet(
    lab: Redsched, typed: str, meant: str, command: str
) -> None:
    said = lab(command, typed).check_failed(2, f"unknown resource class {meant}")
    assert all(name in said for name in ("VCPU", "MEMORY_MB", MILLI, NIC))


def test_a_class_that_no_host_has_is_named_with_those_that_there_are(lab: Redsched) -> None:
    meant = "no host has 'CUSTOM_GPUS_MILLI': did you mean CUSTOM_GPU_MILLI? There are CUSTOM_GPU_MILLI, "
    lab("select", "CUSTOM_GPUS_MILLI=500").check_failed(3, meant)
    ran = lab("explain", "CUSTOM_GPUS_MILLI=500")
    assert (ran.exit_code, meant in " ".join(ran.output.split())) == (1, True)
    found = lab("explain", "CUSTOM_GPUS_MILLI=500", "--json").json()
    assert (found["unknown_classes"], NIC in found["classes"]) == (["CUSTOM_GPUS_MILLI"], True)
    found = lab("explain", f"{MILLI}=5000", "--json").json()
    assert (found["unknown_classes"], found["classes"]) == ([], [])


def test_explain_shows_that_gpu_boxes_are_spared(lab: Redsched) -> None:
    shown = lab("explain", "VCPU=1").check().output
    assert f"spared: hosts with {MILLI} (3 of 10), {NIC} (2 of 10), which the request does not ask for" in " ".join(
        shown.split()
    )
    assert not re.search(r"^box-", shown, re.MULTILINE)
    assert "spared" not in lab("explain", "GPU=1", f"{NIC}=1").check().output
