"""`redsched explain` on a lab with GPUs: the nearest hosts, what would help, and the exit code."""

import asyncio

import pytest

from redsched.model import Request
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
    expected = f"needs {GPU}=4000, free {GPU}=3000; fits: without group a; or after claim on-gpu-1 ends"
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
    """By explain, by each check of a host, and by the host's page."""
    slots = {f"gpu{number}/{GPU}": 1000 for number in range(4)}
    kept = f"gpu0/{GPU}=1000 gpu1/{GPU}=1000 gpu2/{GPU}=1000 gpu3/{GPU}=1000 kept for request big of project web"
    with reserved(store, "gpu-1", slots):
        ran = lab("explain", *GROUPS[:2], "--host", "gpu-1", "--on", "gpu-1")
        page = lab("host", "show", "gpu-1").check().output
    assert ran.exit_code == 1
    shown = " ".join(ran.output.split())
    assert f"nearest: gpu-1 needs {GPU}=1000, free {GPU}=1000; {kept}; no change found to fit" in shown
    assert f"gpu-1: group:a {kept}" in shown
    assert f"best is gpu0 with 1000 {GPU} free, of which 1000 {GPU} are kept for a request that waits" in shown
    assert f"{kept} that waits" in " ".join(page.split())
    heads, *rows = (line.split("\t") for line in page.splitlines() if "\t" in line)
    gpu0 = next(dict(zip(heads, row, strict=True)) for row in rows if row[0] == f"gpu0/{GPU}")
    assert (gpu0["FREE"], gpu0["KEPT"]) == ("1000", "1000")


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
