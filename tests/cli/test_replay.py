"""`redsched replay` of an export and of a trace: a table, JSON, and a picture."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import Redsched
from tests.cli.parts import run

HEADS = ["POLICY", "PLACED", "REFUSED", "HOSTS", "GUESSED", "FILL%", "PEAK%", "FRAGMENTED%"]
WITHOUT = """
import sys
sys.modules["matplotlib"] = None
from redsched.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return a trace of two hosts with 8 VCPU and three tasks, of which `pack` refuses none and `spread` the last."""
    host = {"kind": "host", "inventories": {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 100_000}}}
    tasks = [(0, 2), (1800, 2), (3600, 8)]
    items = [
        {"kind": "trace", "format": 1},
        *(host | {"name": name} for name in ("h1", "h2")),
        *({"kind": "arrival", "at_s": at, "request": {"resources": {"VCPU": vcpu}}} for at, vcpu in tasks),
    ]
    file = tmp_path / "trace.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in items))
    return file


def test_a_replay_of_an_export_compares_policies(redsched: Redsched, tmp_path: Path) -> None:
    """Both policies place all four claims; the replay needs no store but its own."""
    for host in ("h1", "h2"):
        redsched("select", "VCPU=1", "--host", host, "--project", host).check()
        redsched("select", "VCPU=1").check()
    file = tmp_path / "cell.jsonl"
    redsched("export", "--output", str(file)).check()
    found = run("replay", str(file), "--policy", "pack", "--policy", "spread").check()
    lines = [line.split() for line in found.output.splitlines()]
    assert lines[0] == HEADS
    assert [line[:3] for line in lines[1:3]] == [["pack", "4", "0"], ["spread", "4", "0"]]


def test_a_replay_of_a_trace_compares_policies(trace: Path) -> None:
    found = run("replay", str(trace), "--policy", "pack", "--policy", "spread").check()
    lines = found.output.splitlines()
    assert all(len(line) <= 80 for line in lines)
    # Half an hour each with 2 and 4 of 16 VCPU in use, of which 6 and 4 on one host are too few for the largest task.
    assert lines[1].split()[:7] == ["pack", "3", "0", "2", "0", "18.8", "75.0"]
    assert lines[2].split()[:7] == ["spread", "2", "1", "2", "0", "18.8", "25.0"]
    assert lines[3:] == ["FILL%, PEAK% and FRAGMENTED% are of VCPU."]
    packed, spread = (float(line.split()[7]) for line in lines[1:3])
    assert 0 < packed < spread


def test_a_replay_has_its_samples_as_json(trace: Path) -> None:
    run("replay", str(trace), "--class", "MEMORY_MB").check_failed(2, "no request asks for it: use one of VCPU")
    said = run("replay", str(trace), "--policy", "spread", "--json").check().json()
    assert said["class"] == "VCPU"
    (one,) = said["replays"]
    assert (one["placed"], one["refused"], one["fill"]) == (2, 1, {"VCPU": 0.1875})
    assert [(sample["at_s"], sample["refused"], sample["fill"]) for sample in one["samples"]] == [
        (0, 0, {"VCPU": 0.125}),
        (1800, 0, {"VCPU": 0.25}),
        (3600, 1, {"VCPU": 0.25}),
    ]


def test_what_cannot_be_replayed_is_refused_in_one_line(trace: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(trace.read_text().replace('"at_s": 1800', '"at_s": "noon"'))
    run("replay", str(bad)).check_failed(2, "bad.jsonl, line 5", "at_s must be a number of seconds")
    run("replay", str(trace), "--policy", "pack", "--policy", "best").check_failed(2, "unknown policy 'best'")
    bad.write_text("")
    run("replay", str(bad)).check_failed(2, "the file is empty")


def test_a_picture_needs_matplotlib_and_names_its_extra(trace: Path, tmp_path: Path) -> None:
    """Before anything is replayed."""
    arguments = ["replay", str(trace), "--picture", str(tmp_path / "replay.png")]
    ran = subprocess.run([sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "pip install 'redsched[plots]'" in ran.stderr


@pytest.mark.skipif(not find_spec("matplotlib"), reason="matplotlib is not installed: it is in the extra 'plots'")
def test_a_picture_is_drawn(trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "replay.png"
    run("replay", str(trace), "--picture", str(tmp_path / "replay.pdf")).check_failed(2, "ends with .png")
    run("replay", str(trace), "--picture", str(tmp_path / "no" / "replay.png")).check_failed(2, "does not exist")
    run("replay", str(trace), "--policy", "pack", "--policy", "spread", "--picture", str(file)).check()
    assert file.read_bytes().startswith(PNG)
