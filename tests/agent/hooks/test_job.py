"""The hook for jobs: processes for real, systemd and containers where there are any, and their command lines."""

import contextlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_until_sync

HOOK = Path(__file__).parents[3] / "deploy" / "hooks" / "job"
PLACED = "1790000000000-9f3a12cd.4711"
IMAGE = "busybox"
TIME_IS_UP = 124

FAKE_SYSTEMD_RUN = """#!/bin/sh
echo "systemd-run $*" >> {folder}/commands
for one; do case $one in --property=StandardOutput=append:*) log=${{one#*append:}};; esac; done
while [ "$1" != -- ]; do shift; done; shift
setsid "$@" >> $log 2>&1 &
"""
FAKE_SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> {folder}/commands
case "$*" in *show*) echo /redsched.slice/job.service;; *) echo "Unit is not loaded." >&2; exit 5;; esac
"""
FAKE_ENGINE = """#!/bin/sh
echo "$(basename $0) $*" >> {folder}/commands
case $1 in
inspect) cat {folder}/container;;
rm) echo "Error: No such container: $3" >&2; exit 1;;
run) while [ "$1" != {image} ]; do shift; done; shift; echo $$ > {folder}/container; exec "$@";;
esac
"""
"""It runs the job on this machine, as the process that the engine's client would be."""


def missing(kind: str) -> str:
    """Return why jobs of a kind cannot be run here; '' if they can."""
    if kind == "processes":
        return ""
    words = ["systemctl", "is-system-running"] if kind == "systemd" else [kind, "image", "inspect", IMAGE]
    if shutil.which(words[0]) is None:
        return f"{words[0]} is not installed"
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"{' '.join(words)}: {(ran.stderr or ran.stdout).strip()}" if ran.returncode else ""


@dataclass
class Hook:
    """The hook for one claim, called as an agent calls it."""

    folder: Path
    kind: str = "processes"
    options: tuple[str, ...] = ("--grace", "5")
    claim: dict[str, Any] = field(default_factory=dict)

    umask: int = -1
    path: str = ""

    def run(self, verb: str, placed: str = PLACED, **changes: Any) -> "subprocess.CompletedProcess[str]":
        order = {"verb": verb, "claim_id": "job-1", "placed": placed, "host": "h1", "project": "lab", "slots": {}}
        environment = {**os.environ, "REDSCHED_JOB_FOLDER": str(self.folder / "jobs")}
        environment["PATH"] = self.path or f"{self.folder / 'bin'}:{environment['PATH']}"
        return subprocess.run(
            [HOOK, self.kind, *self.options, verb],
            input=json.dumps({**order, **self.claim, **changes}),
            env=environment,
            umask=self.umask,
            capture_output=True,
            text=True,
            check=False,
        )

    def start(self, *argv: str, placed: str = PLACED, **payload: Any) -> dict[str, Any]:
        """Start a job, and return what the hook names."""
        image = {"image": IMAGE} if self.kind in ("docker", "podman") else {}
        ran = self.run("start", placed, payload={"argv": list(argv), **image, **payload})
        assert (ran.returncode, ran.stderr) == (0, "")
        return dict(json.loads(ran.stdout))

    def of(self, name: str, placed: str = PLACED) -> Path:
        return self.folder / "jobs" / placed / name

    def status(self, placed: str = PLACED) -> int:
        """Wait for the exit status of the job, and return it."""
        wait_until_sync(self.of("status", placed).exists, timeout=60, what="the job has ended")
        return int(self.of("status", placed).read_text())

    def log(self) -> str:
        return self.of("log").read_text()

    def commands(self) -> list[str]:
        """Return the calls of the stand-ins for systemd and the engines of containers."""
        return (self.folder / "commands").read_text().splitlines()

    def stand_ins(self, kind: str) -> "Hook":
        """Use stand-ins for the commands of a kind."""
        (self.folder / "bin").mkdir()
        texts = {
            "systemd-run": FAKE_SYSTEMD_RUN,
            "systemctl": FAKE_SYSTEMCTL,
            "docker": FAKE_ENGINE,
            "podman": FAKE_ENGINE,
        }
        for name, text in texts.items():
            (self.folder / "bin" / name).write_text(text.format(folder=self.folder, image=IMAGE))
            (self.folder / "bin" / name).chmod(0o755)
        self.kind = kind
        return self


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    """Yield the hook, and end what it has started."""
    made = Hook(tmp_path)
    yield made
    for folder in (tmp_path / "jobs").glob("*"):
        made.run("stop", folder.name)


@pytest.fixture(params=["processes", "systemd", "docker", "podman"])
def real_hook(request: pytest.FixtureRequest, hook: Hook) -> Hook:
    """Return the hook for each kind that this machine has."""
    if reason := missing(request.param):
        pytest.skip(reason)
    hook.kind = request.param
    return hook


def runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


# -- each kind


@pytest.mark.parametrize("status", [0, 3])
def test_a_job_leaves_its_log_and_its_exit_status(real_hook: Hook, status: int) -> None:
    named = real_hook.start("sh", "-c", f"echo to $NAME; echo err >&2; exit {status}", env={"NAME": "ann & bob"})
    assert named["status_file"] == str(real_hook.of("status"))
    assert real_hook.status() == status
    assert sorted(real_hook.log().splitlines()) == ["err", "to ann & bob"]


def test_a_stop_ends_the_job_and_all_that_it_has_started(real_hook: Hook) -> None:
    named = real_hook.start("sh", "-c", "setsid sleep 600 & sleep 600")
    assert all(map(runs, named["pids"]))
    assert real_hook.run("stop").returncode == 0
    assert not any(map(runs, named["pids"]))
    assert real_hook.status() == 128 + 15
    assert real_hook.run("stop").returncode == 0, "of what is gone"


# -- processes


def test_a_start_that_is_repeated_finds_the_job_that_runs(hook: Hook) -> None:
    """Also after it has ended: it is not run a second time."""
    go = hook.folder / "go"
    job = ("sh", "-c", f"echo once; while [ ! -e {go} ]; do sleep 0.02; done; exit 4")
    assert hook.start(*job) == hook.start(*job)
    go.touch()
    assert hook.status() == 4
    assert hook.start(*job)["status_file"] == str(hook.of("status"))
    assert hook.log() == "once\n"


def test_a_job_that_ignores_sigterm_is_killed(hook: Hook) -> None:
    hook.options = ("--grace", "0.2")
    hook.start("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done")
    wait_until_sync(lambda: hook.log() == "deaf\n")
    assert hook.run("stop").returncode == 0
    assert hook.status() == 128 + 9


def test_a_stop_leaves_other_jobs_alone(hook: Hook) -> None:
    """Two placements of one claim may be on a host, while it moves to other pools there."""
    other = hook.start("sleep", "600", placed=PLACED + "2")
    hook.start("sleep", "600")
    assert hook.run("stop").returncode == 0
    assert all(map(runs, other["pids"]))


def test_a_job_whose_stop_came_first_is_not_started(hook: Hook) -> None:
    """The agent ends a start that takes too long; its supervisor may not have come to the job yet."""
    assert hook.run("stop").returncode == 0
    order = {"claim_id": "job-1", "placed": PLACED, "host": "h1", "project": "", "slots": {}}
    hook.of("order").write_text(json.dumps({**order, "payload": {"argv": ["touch", str(hook.folder / "ran")]}}))
    subprocess.run([HOOK, "processes", "supervise", hook.folder / "jobs" / PLACED], check=True)
    assert not (hook.folder / "ran").exists()


def test_a_job_has_the_variables_of_its_claim(hook: Hook) -> None:
    slots = {"VCPU": 2, "gpu0/CUSTOM_GPU_MILLI": 1000, "gpu3/CUSTOM_GPU_MILLI": 500, "gpu3/CUSTOM_GPU_MEMORY_MB": 9}
    hook.claim = {"slots": slots, "claim_id": "job-b", "devices": {"gpu3": "GPU-86f37a43"}}
    hook.start("env", claims=["job-a", "job-b"], env={"MINE": "1"})
    hook.status()
    found = dict(line.split("=", 1) for line in hook.log().splitlines())
    wanted = {"CUDA_VISIBLE_DEVICES": "0,GPU-86f37a43", "JOB_RANK": "1", "JOB_SIZE": "2", "MINE": "1"}
    assert wanted.items() <= found.items()
    assert (found["JOB_CLAIM"], found["JOB_HOST"]) == ("job-b", "h1")


def test_without_gpus_a_job_sees_none(hook: Hook) -> None:
    hook.start("sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}.")
    hook.status()
    assert hook.log() == ".\n"


@pytest.mark.skipif(not Path("/sys/devices/system/node/node0").exists(), reason="this kernel has no NUMA nodes")
def test_a_job_runs_on_the_cpus_of_its_node(hook: Hook) -> None:
    """One on a node that this machine does not have, as with a fleet file, runs on any."""
    show = (sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))")
    hook.claim = {"slots": {"numa0/VCPU": 1}}
    hook.start(*show)
    hook.status()
    assert set(json.loads(hook.log())) <= os.sched_getaffinity(0)
    hook.claim = {"slots": {"numa77/VCPU": 1}}
    hook.start(*show, placed=PLACED + "2")
    hook.status(PLACED + "2")
    assert set(json.loads(hook.of("log", PLACED + "2").read_text())) == os.sched_getaffinity(0)


def test_a_job_runs_in_its_folder_or_where_the_payload_says(hook: Hook, tmp_path: Path) -> None:
    hook.start("pwd")
    hook.start("pwd", placed=PLACED + "2", cwd=str(tmp_path))
    for placed, folder in ((PLACED, hook.of("work")), (PLACED + "2", tmp_path)):
        hook.status(placed)
        assert hook.of("log", placed).read_text() == f"{folder}\n"


def test_a_job_whose_time_is_up_ends_without_an_agent(hook: Hook) -> None:
    hook.claim = {"runtime_deadline_ms": 1}
    hook.start("sleep", "600")
    assert hook.status() == TIME_IS_UP


def test_a_command_that_does_not_exist_fails_the_start(hook: Hook) -> None:
    ran = hook.run("start", payload={"argv": ["no-such-command"]})
    assert ran.returncode == 1
    assert "could not be started: no-such-command: [Errno 2]" in ran.stderr


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (None, "needs argv"),
        ("train.sh", "is no object"),
        ({}, "needs argv"),
        ({"argv": "train.sh"}, "the payload has 'argv'"),
        ({"argv": []}, "needs argv"),
        ({"argv": ["a", 1]}, "needs argv"),
        ({"argv": ["a"], "env": {"A": 1}}, "the values of env are texts"),
        ({"argv": ["a"], "argument": 1}, "the payload has 'argument'"),
        ({"argv": ["a"], "cwd": "/no/such/folder"}, "the folder /no/such/folder does not exist on this host"),
        ({"argv": ["a"], "cwd": "."}, "the folder . does not exist on this host"),
    ],
)
def test_a_payload_that_is_no_job_fails_the_start(hook: Hook, payload: object, says: str) -> None:
    ran = hook.run("start", payload=payload)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert says in ran.stderr
    assert not (hook.folder / "jobs").exists()


def test_a_resize_is_refused_and_says_what_to_do(hook: Hook) -> None:
    ran = hook.run("resize")
    assert ran.returncode == 1
    assert "release the claim, and run the job with other amounts" in ran.stderr


def test_a_text_that_no_program_can_get_fails_the_start(hook: Hook) -> None:
    ran = hook.run("start", payload={"argv": ["true"], "env": {"A": "\0"}})
    assert ran.returncode == 1
    assert "could not be started: true: embedded null byte" in ran.stderr


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_users_read_the_log_and_only_the_hooks_user_what_it_was_given(hook: Hook, umask: int) -> None:
    """Whatever the umask of the agent is."""
    hook.umask = umask
    assert hook.start("sh", "-c", "umask")["log"] == str(hook.of("log"))
    hook.status()
    assert hook.log() == "0022\n"
    modes = {name: hook.of(name).stat().st_mode & 0o777 for name in ("order", "log", ".", "..")}
    assert modes == {"order": 0o600, "log": 0o644, ".": 0o755, "..": 0o755}


def test_a_start_after_a_reboot_names_no_process_of_before(hook: Hook) -> None:
    hook.of("work").mkdir(parents=True)
    hook.of("pid").write_text("1")
    assert hook.start("sleep", "600")["pids"] != [1]


def test_a_process_that_names_the_folder_of_a_job_is_not_of_the_job(hook: Hook) -> None:
    """As `watch ls FOLDER` in somebody's terminal."""
    hook.start("sleep", "600")
    looks = [sys.executable, "-c", "input()", str(hook.of("."))]
    with subprocess.Popen(looks, stdin=subprocess.PIPE) as process:
        assert hook.run("stop").returncode == 0
        assert process.poll() is None
        process.communicate(b"\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs jobs as others")
def test_a_user_cannot_change_the_files_that_the_agent_writes(hook: Hook, tmp_path: Path) -> None:
    """Else a link in their place would make root write elsewhere."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    hook.options = ("--as", "nobody")
    hook.start("sh", "-c", "ln -sf /tmp/elsewhere ../status.new || ln -sf /tmp/elsewhere ../log || touch $JOB_FOLDER/x")
    assert hook.status() == 0
    assert hook.of("work/x").exists()
    assert not any(one.is_symlink() for one in hook.of(".").iterdir())


def test_the_folders_of_jobs_that_ended_long_ago_are_removed(hook: Hook) -> None:
    """Of a job that still runs, however old, and of what is no job, none is."""
    for placed in ("1-a.1", "1-a.2"):
        hook.start("sleep", "600", placed=placed)
    hook.run("stop", "1-a.1")
    hook.of("not-a-job", "1-a.3").parent.mkdir()
    for folder in (hook.folder / "jobs").iterdir():
        os.utime(folder, (1, 1))
    hook.start("true")
    assert sorted(one.name for one in (hook.folder / "jobs").iterdir()) == sorted(["1-a.2", "1-a.3", PLACED])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs jobs as others")
def test_a_job_runs_as_the_user_of_its_project(hook: Hook, tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    hook.claim, hook.options = {"project": "nobody"}, ("--as", "{project}")
    hook.start("sh", "-c", "id -un; echo $USER; touch mine")
    assert hook.status() == 0
    assert hook.log() == "nobody\nnobody\n"
    assert hook.of("work/mine").stat().st_uid == pwd.getpwnam("nobody").pw_uid


@pytest.mark.parametrize(
    ("project", "says"),
    [("root", "is a user of the system (uid 0)"), ("no-one-here", "there is no user 'no-one-here'")],
)
def test_a_job_runs_as_no_user_of_the_system(hook: Hook, project: str, says: str) -> None:
    hook.claim, hook.options = {"project": project}, ("--as", "{project}")
    ran = hook.run("start", payload={"argv": ["true"]})
    assert ran.returncode == 1
    assert says in ran.stderr


# -- the commands of systemd and of containers

LARGE = {"VCPU": 2, "numa0/PCPU": 1, "MEMORY_MB": 512, "numa0/MEMORY_MB": 512, "gpu1/CUSTOM_GPU_MILLI": 1000}


@pytest.fixture
def cpus() -> str:
    """Return the CPUs of the first NUMA node, as a list."""
    path = Path("/sys/devices/system/node/node0/cpulist")
    if not path.exists():
        pytest.skip("this kernel has no NUMA nodes")
    first, _, last = path.read_text().strip().partition("-")
    return ",".join(map(str, range(int(first), int(last or first) + 1)))


def test_a_unit_has_the_limits_of_its_claim(hook: Hook, cpus: str) -> None:
    hook.stand_ins("systemd").claim = {"slots": LARGE, "project": "a-team"}
    named = hook.start("sh", "-c", "exit 3")
    assert named["cgroup"] == "redsched.slice/job.service"
    assert hook.status() == 3
    words = hook.commands()[0].split()
    assert words[: words.index("--")].count(f"--unit=redsched-{PLACED}.service") == 1
    wanted = ["Slice=redsched-a_team.slice", "MemoryMax=1024M", "CPUQuota=300%"]
    wanted += [f"AllowedCPUs={cpus}", "AllowedMemoryNodes=0", f"StandardOutput=append:{hook.of('log')}"]
    assert {f"--property={one}" for one in wanted} <= set(words)


def test_a_unit_without_amounts_has_no_limits(hook: Hook) -> None:
    hook.stand_ins("systemd").start("true")
    assert not any(name in hook.commands()[0] for name in ("MemoryMax", "CPUQuota", "AllowedCPUs"))


def test_a_unit_of_a_user_is_in_the_slice_of_the_user(hook: Hook) -> None:
    hook.stand_ins("systemd").options = ("--as", "nobody")
    hook.run("start", payload={"argv": ["true"]})
    assert f"--property=Slice=user-{pwd.getpwnam('nobody').pw_uid}.slice" in hook.commands()[0].split()


@pytest.mark.parametrize(("engine", "gpus"), [("docker", '--gpus "device=1"'), ("podman", "--device nvidia.com/gpu=1")])
def test_a_container_has_the_limits_of_its_claim(hook: Hook, cpus: str, engine: str, gpus: str) -> None:
    hook.stand_ins(engine).claim = {"slots": LARGE}
    named = hook.start("sh", "-c", "exit 3", cwd="/data", env={"MINE": "a b"})
    assert hook.status() == 3
    assert len(named["pids"]) == 2, "the supervisor, and the container"
    ran = next(line for line in hook.commands() if line.startswith(f"{engine} run"))
    limits = f"--memory 1024m --cpus 3 --cpuset-cpus {cpus} --cpuset-mems 0 {gpus} --workdir /data"
    assert f"run --rm --init --name redsched-{PLACED} {limits} --env JOB_CLAIM=job-1" in ran
    assert ran.endswith(f"--env MINE=a b -- {IMAGE} sh -c exit 3")
    assert "_VISIBLE_DEVICES" not in ran


def test_a_container_without_gpus_gets_none(hook: Hook) -> None:
    """Not those either that its image, or its payload, asks NVIDIA's runtime for."""
    hook.stand_ins("docker").start("true", env={"NVIDIA_VISIBLE_DEVICES": "all"})
    hook.status()
    ran = next(line for line in hook.commands() if line.startswith("docker run"))
    assert "--gpus" not in ran
    assert re.findall(r"NVIDIA_VISIBLE_DEVICES=\w+", ran) == ["NVIDIA_VISIBLE_DEVICES=void"]


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_an_image_is_no_option_of_the_engine(hook: Hook, engine: str) -> None:
    """Else it could be `--volume=/:/host`."""
    hook.stand_ins(engine).run("start", payload={"argv": [IMAGE, "true"], "image": "--privileged"})
    ran = next(line for line in hook.commands() if line.startswith(f"{engine} run"))
    assert " -- --privileged " in ran


@pytest.mark.parametrize("kind", ["systemd", "docker", "podman"])
def test_a_host_without_the_program_refuses_a_start_and_has_nothing_to_stop(hook: Hook, kind: str) -> None:
    """A stop that failed would be repeated for ever."""
    (hook.folder / "bin").mkdir()
    hook.kind, hook.path = kind, str(hook.folder / "bin")
    (hook.folder / "bin" / "env").symlink_to("/usr/bin/env")
    (hook.folder / "bin" / "python3").symlink_to(sys.executable)
    ran = hook.run("start", payload={"argv": ["true"], "image": IMAGE})
    assert ran.returncode == 1
    assert f"is not in {hook.folder / 'bin'}" in ran.stderr
    assert hook.run("stop").returncode == 0


def test_a_container_is_removed_when_its_job_is_stopped(hook: Hook) -> None:
    hook.stand_ins("docker").start("sleep", "600")
    assert hook.run("stop").returncode == 0
    assert f"docker rm --force redsched-{PLACED}" in hook.commands()


@pytest.mark.parametrize("message", ["No such container: x", "removal of container x is already in progress"])
def test_a_container_that_is_gone_already_is_no_failure(hook: Hook, message: str) -> None:
    hook.stand_ins("docker").start("true")
    hook.status()
    (hook.folder / "bin" / "docker").write_text(f"#!/bin/sh\necho Error response from daemon: {message} >&2; exit 1\n")
    assert hook.run("stop").returncode == 0
    (hook.folder / "bin" / "docker").write_text("#!/bin/sh\necho Cannot connect to the Docker daemon >&2; exit 1\n")
    ran = hook.run("stop")
    assert (ran.returncode, ran.stderr) == (1, "docker rm: Cannot connect to the Docker daemon\n")


def test_a_container_that_cannot_be_run_fails_the_start(hook: Hook) -> None:
    hook.stand_ins("docker")
    (hook.folder / "bin" / "docker").write_text("#!/bin/sh\n[ $1 = run ] && echo no such image >&2; exit 125\n")
    ran = hook.run("start", payload={"argv": ["true"], "image": IMAGE})
    assert ran.returncode == 1
    assert "the job could not be started: no such image" in ran.stderr


def test_a_payload_without_an_image_fails_the_start_of_a_container(hook: Hook) -> None:
    ran = hook.stand_ins("podman").run("start", payload={"argv": ["true"]})
    assert ran.returncode == 1
    assert "the payload has no image, and this host runs jobs with podman" in ran.stderr
