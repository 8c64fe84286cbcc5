"""`redsched explain` on a lab with GPUs: the nearest hosts, what would help, and the exit code."""

import asyncio

import pytest

from redsched.model import Group, Request
from redsched.scheduler import Scheduler
from tests.cli.conftest import Redsched, report_all
from tests.support.builders.cells import usual_settings
from tests.support.builders.reservations import reserved
from tests.support.fleets.gpu_lab import GPU, gpus, reports

BOTH_LINKS = True
GROUPS = [word for name in "abcd" for word in ("--group", f"{{name: {name}, resources: {{{GPU}: 1000}}}}")]
BOXES = [f"gpu-{number}" for number in range(1, 5)]


@pytest.fixture
def lab(store: str, redsched: Redsched) -> Redsched:
    """Return the function that runs commands, on a store with four boxes and twenty machines too."""
    report_all(store, reports())
    return redsched


def claim(store: str, *requests: Request) -> None:
    """Claim for each request."""

    async def claimed() -> None:
        async with Scheduler.connect(store, usual_settings()) as scheduler:
            for one in requests:
                await scheduler.select(one)

    asyncio.run(claimed())


def nearest(output: str) -> list[str]:
    """Return the lines on the nearest hosts, each as one line."""
    return [f"gpu-{line.strip()}" for line in " ".join(output.split()).split("nearest: gpu-")[1:]]


def test_two_whole_gpus_are_proposed_as_two_groups(lab: Redsched) -> None:
    ran = lab("explain", f"{GPU}=2000")
    found = nearest(ran.output)
    assert (ran.exit_code, ran.errors, len(found)) == (1, "", 3)
    for line in found:
        assert line.split()[0] in BOXES
        assert f"needs {GPU}=2000, free {GPU}=1000 in gpu0; fits: 2000 {GPU} as 2 groups of 1000" in line


def test_the_nearest_hosts_and_the_claims_in_the_way_of_four_groups(lab: Redsched, store: str) -> None:
    taken = [gpus(1, hosts=frozenset({box}), claim_ids=(f"on-{box}",), project="web") for box in BOXES]
    more = [gpus(1, hosts=frozenset({box}), claim_ids=(f"also-{box}",), project="db") for box in BOXES[1:]]
    claim(store, *taken, *more)
    ran = lab("explain", *GROUPS)
    found = nearest(ran.output)
    assert ran.exit_code == 1
    expected = f"needs {GPU}=4000, free {GPU}=3000; fits: without group d; or after claim on-gpu-1 ends"
    assert found[0] == f"gpu-1 {expected}"
    assert [line.split()[0] for line in found] == BOXES[:3]
    assert found[1].endswith("fits: without groups c, d; or after claims also-gpu-2, on-gpu-2 end")
    shown = lab("explain", *GROUPS, "--json").json()["nearest"][1]
    assert {one["claim_id"]: one["project"] for one in shown["claims"]} == {"also-gpu-2": "db", "on-gpu-2": "web"}
    assert (shown["needs"], shown["free"]) == ({GPU: 4000}, {GPU: 2000})


def test_an_amount_that_no_place_has_on_full_boxes_needs_groups_and_the_end_of_claims(
    lab: Redsched, store: str
) -> None:
    claim(store, *(gpus(4, hosts=frozenset({box}), claim_ids=(f"on-{box}",)) for box in BOXES))
    ran = lab("explain", f"{GPU}=2000")
    words = (
        f"fits: 2000 {GPU} as 2 groups of 1000, because no place of it has more than 1000, after claim on-gpu-1 ends"
    )
    assert words in nearest(ran.output)[0]


def test_many_claims_in_the_way_are_counted(lab: Redsched, store: str) -> None:
    small = [Request({"VCPU": 2}, hosts=frozenset({"gpu-1"}), claim_ids=(f"c{number}",)) for number in range(16)]
    claim(store, *small)
    whole = [word for name in "ab" for word in ("--group", f"{{name: {name}, resources: {{VCPU: 16}}}}")]
    found = nearest(lab("explain", *whole, "--host", "gpu-1").output)
    assert found[0].endswith("after claims c0, c1, c10, c11, c12 and 11 more end")


def test_what_is_kept_for_another_request_is_named_everywhere(lab: Redsched, store: str) -> None:
    """By explain, by each check of a host, by a refusal, and by the host's page."""
    slots = {f"gpu{number}/{GPU}": 1000 for number in range(4)}
    kept = f"gpu0/{GPU}=1000 gpu1/{GPU}=1000 gpu2/{GPU}=1000 gpu3/{GPU}=1000 kept for request big of project web"
    with reserved(store, "gpu-1", slots):
        ran = lab("explain", *GROUPS[:2], "--host", "gpu-1", "--on", "gpu-1")
        refused = lab("select", *GROUPS[:2], "--host", "gpu-1").check_failed(3)
        page = lab("host", "show", "gpu-1").check().output
    assert ran.exit_code == 1
    shown = " ".join(ran.output.split())
    assert f"nearest: gpu-1 needs {GPU}=1000, free {GPU}=1000; {kept}; no change found to fit" in shown
    assert f"gpu-1: kept {kept}" in shown
    assert f"best is gpu0 with 1000 {GPU} free, of which 1000 {GPU} are kept for request big of project web" in shown
    amounts = " and ".join(f"1000 gpu{number}/{GPU}" for number in range(4))
    assert refused.endswith(
        f"1 kept for another request; nearest gpu-1: {amounts} are kept for request big of project web"
    )
    assert f"{kept} that waits" in " ".join(page.split())
    heads, *rows = (line.split("\t") for line in page.splitlines() if "\t" in line)
    gpu0 = next(dict(zip(heads, row, strict=True)) for row in rows if row[0] == f"gpu0/{GPU}")
    assert (gpu0["FREE"], gpu0["KEPT"]) == ("1000", "1000")


def test_gpus_of_one_numa_node_are_explained_by_what_a_node_has(lab: Redsched) -> None:
    ran = lab("explain", "GPU=3", "--same", "numa", "--on", "gpu-1")
    needs = "needs 3 GPUs, 2 whole ones free in numa0 (4 of 4 in all)"
    assert nearest(ran.output)[0].startswith(f"gpu-1 {needs}; fits: from several NUMA nodes")
    rows = [line.split("\t") for line in ran.output.splitlines()]
    assert ["numa:GPU", "4"] in rows
    assert any(row[0] == "numa:GPU" and row[-1].endswith(needs) for row in rows)
    refused = lab("select", "GPU=3", "--same", "numa").errors
    assert "22 without a NUMA node, 4 short of GPU in one NUMA node; nearest gpu-1" in refused


@pytest.fixture
def half_taken(lab: Redsched, store: str) -> Redsched:
    """Return the function that runs commands, on the lab with half a GPU of each box claimed."""
    claim(store, *(half_a_gpu(hosts=frozenset({box}), claim_ids=(f"on-{box}",)) for box in BOXES))
    return lab


def half_a_gpu(**more: object) -> Request:
    return Request(groups=(Group("gpu0", {GPU: 500}),), **more)  # type: ignore[arg-type]  # fields by name


def test_whole_gpus_are_explained_in_gpus_as_they_were_asked_for(half_taken: Redsched) -> None:
    """And as `host list` counts them on a terminal: 3.5/4."""
    ran = half_taken("explain", "GPU=4", "--on", "gpu-1", "--on", "ci-1")
    needs = "needs 4 GPUs, 3 whole ones free (3.5 of 4 in all)"
    assert nearest(ran.output)[0] == f"gpu-1 {needs}; fits: GPU=3 instead of GPU=4; or after claim on-gpu-1 ends"
    rows = [line.split("\t") for line in ran.output.splitlines()]
    assert ["GPU", "26"] in rows
    of_boxes = [row for row in rows if row[0] == "GPU" and len(row) == 3]
    assert [row[1] for row in of_boxes] == ["no", "yes", "no"]
    assert of_boxes[2][2].endswith(needs)
    assert of_boxes[0][2] == "needs 1 GPU in one pool, best is the host itself with 0 GPUs free"
    assert not any(word in ran.output for word in ("group", "CUSTOM_GPU_MILLI"))
    miss = half_taken("explain", "GPU=4", "--json").json()["nearest"][0]
    assert (miss["free"], miss["total_free"], miss["capacity"]) == ({GPU: 3000}, {GPU: 3500}, {GPU: 4000})


def test_more_gpus_than_any_machine_has_are_refused_with_what_there_is(half_taken: Redsched) -> None:
    refused = "none of 26 hosts can take 8 GPUs: 26 short of GPU; no host has more than 4 GPUs; "
    for command in (("select", "GPU=8"), ("run", "GPU=8", "--", "true")):
        half_taken(*command).check_failed(3, f"{refused}nearest gpu-1: GPU=3 instead of GPU=8")
    assert "no host has more than 4 GPUs" in half_taken("explain", "GPU=8").output
    assert half_taken("explain", "GPU=8", "VCPU=16", "--json").json()["largest"] == {GPU: 4000}
    assert half_taken("explain", "GPU=4", "VCPU=16", "--json").json()["largest"] == {}


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("GPU=3", "--same", "numa"), "3 GPUs of one NUMA node: 22 without a NUMA node, "),
        (("GPU=3", "--same", "numa"), "; nearest gpu-1: from several NUMA nodes"),
        (("GPU=4", "VCPU=2"), "; nearest gpu-1: GPU=3 instead of GPU=4"),
        (("GPU=1", "VCPU=40"), "40 VCPU, 1 GPU: 26 short of VCPU; no host has more than 32 VCPU; "),
        (("GPU=4", "-n", "3"), "3 places of 4 GPUs: 26 short of GPU; nearest gpu-1: GPU=3 instead of GPU=4"),
        (("VCPU=16", "-n", "40"), "40 places of 16 VCPU: 2 short of VCPU, 24 with room, but not for all places"),
        (("GPU=1", "CUSTOM_GPU_MEMORY_MB=1Gi"), "1 GPU with 1024 CUSTOM_GPU_MEMORY_MB: "),
    ],
)
def test_refusals_speak_of_gpus_as_they_were_asked_for(
    half_taken: Redsched, words: tuple[str, ...], refused: str
) -> None:
    half_taken("select", *words).check_failed(3, refused)


def test_a_part_of_a_gpu_is_explained_as_such(lab: Redsched, store: str) -> None:
    claim(store, gpus(3, hosts=frozenset({"gpu-1"})), half_a_gpu(hosts=frozenset({"gpu-1"}), claim_ids=("half",)))
    found = nearest(lab("explain", "GPU=0.7", "--host", "gpu-1").output)[0]
    assert "needs 0.7 of one GPU, which none has free (0.5 of 4 in all); fits: GPU=0.5 instead of GPU=0.7" in found


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        (("VCPU=2",), 0),
        (("VCPU=9",), 1),
        (("CUSTOM_NOBODY_HAS=1",), 1),
        (("VCPU=2", "--project", "small"), 1),
        (("VCPU=9", "--json"), 1),
    ],
)
def test_the_exit_code_says_whether_the_request_would_be_refused(
    redsched: Redsched, words: tuple[str, ...], exit_code: int
) -> None:
    redsched("quota", "set", "small", "VCPU=1").check()
    ran = redsched("explain", *words)
    assert (ran.exit_code, ran.errors) == (exit_code, "")
    dry_run = [word for word in words if word != "--json"]
    assert redsched("select", "--dry-run", *dry_run).exit_code == (3 if exit_code else 0)
