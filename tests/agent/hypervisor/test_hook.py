"""The example hook for virtual machines, with virsh and libvirt's test driver, which forgets after each call."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[3] / "deploy" / "hooks" / "libvirt"
PLACED = "1790000000000-9f3a12cd.4711"
TEST_DRIVER = {"REDSCHED_LIBVIRT_URI": "test:///default", "VM_TYPE": "test"}

pytestmark = pytest.mark.skipif(
    shutil.which("virsh") is None, reason="virsh is not installed: apt install libvirt-clients"
)


def hook(
    verb: str, environment: dict[str, str] = TEST_DRIVER, placed: str = PLACED
) -> "subprocess.CompletedProcess[str]":
    claim = {"verb": verb, "claim_id": "web-1", "placed": placed, "slots": {"VCPU": 2, "MEMORY_MB": 512}}
    return subprocess.run(
        [HOOK, verb],
        input=json.dumps(claim),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_start_creates_the_domain_and_names_it() -> None:
    ran = hook("start")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == {"domain": f"redsched-{PLACED}"}


def test_the_path_of_a_disk_may_have_quotes() -> None:
    ran = hook("start", TEST_DRIVER | {"VM_DISK": '/images/ann\'s "own" & {claim}.qcow2'})
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_start_that_libvirt_refuses_fails_with_its_reason() -> None:
    ran = hook("start", TEST_DRIVER | {"VM_TYPE": "no-such-type"})
    assert ran.returncode == 1
    assert "virsh create: " in ran.stderr
    assert ran.stdout == ""


def test_a_stop_of_what_is_gone_succeeds() -> None:
    assert hook("stop").returncode == 0


def test_a_stop_without_libvirtd_fails(tmp_path: Path) -> None:
    """Otherwise the amounts would be free while the machine runs."""
    ran = hook("stop", {"REDSCHED_LIBVIRT_URI": f"test://{tmp_path}/none.xml"})
    assert ran.returncode == 1


def test_a_resize_is_refused_and_says_what_to_do() -> None:
    ran = hook("resize")
    assert ran.returncode == 1
    assert "move the claim" in ran.stderr
