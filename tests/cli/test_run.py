"""`redsched run` with an agent and the hook for jobs: log, exit status, Ctrl-C, and jobs that do not run."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redsched.auth.access_token import new_token
from redsched.auth.authenticator import Authenticator
from redsched.auth.watched_file import WatchedTokenFile
from redsched.cli.fleet import Fleet
from redsched.cli.job import following
from redsched.cli.job.command import stop
from redsched.cli.job.following import Follower, follow
from redsched.errors import NotFound, RedschedError, SchemaMismatch, StoreUnavailable
from redsched.model import Claim, ClaimStatus, EndReason, Placement, Reason, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.auth.parts import document, entry, write
from tests.cli.conftest import REST, STORE, served
from tests.cli.parts import COMMAND, Ran, Running, run, running
from tests.support.waiting import wait_until_sync

HOOK = Path(__file__).parents[2] / "deploy" / "hooks" / "job"
FLEET = """
hosts:
  - name: h1
    inventories: {VCPU: {total: 4}}
    pools: {gpu0: &gpu {inventories: {CUSTOM_GPU_MILLI: {total: 1000}}}, gpu1: *gpu}
"""
TIME_IS_UP, NO_STATUS = 124, 125
TENANT = "tenant"
"""Over REST, as a tenant."""
TOKEN = "1790000000000-9f3a12cd.4711"


@dataclass
class Lab:
    """A host with an agent and the hook for jobs, and how commands reach the fleet."""

    folder: Path
    environment: dict[str, str]

    def command(self, *arguments: str) -> Ran:
        """Run another command to its end."""
        return run(*arguments, environment=self.environment)

    def run(self, *arguments: str) -> Ran:
        """Run `redsched run` to its end."""
        with self.running(*arguments) as process:
            return process.wait()

    def running(self, *arguments: str) -> AbstractContextManager[Running]:
        return running("run", *arguments, environment=self.environment)

    def claim(self, claim_id: str) -> dict[str, Any]:
        return self.command("claim", "show", claim_id, "--json").check().json()

    def reaches(self, claim_id: str, state: str) -> dict[str, Any]:
        """Wait until a claim is in a state, and return it."""
        wait_until_sync(lambda: self.claim(claim_id)["state"] == state, timeout=60, what=f"{claim_id} is {state}")
        return self.claim(claim_id)


def tenant(folder: Path) -> tuple[Authenticator, dict[str, str]]:
    """Return what knows the token of a tenant who does not see hosts, and the variable that names the token's file."""
    write(folder / "token", new_token("ann"))
    about = {"id": "ann", "role": "tenant", "projects": ["lab"], "project_wide": False, "claim_prefix": "ann-"}
    write(folder / "tokens.yaml", document(entry((folder / "token").read_text(), **about)))
    return Authenticator(WatchedTokenFile(folder / "tokens.yaml")), {"REDSCHED_TOKEN_FILE": str(folder / "token")}


@pytest.fixture(params=[STORE, pytest.param(REST, marks=pytest.mark.long)])
def link(request: pytest.FixtureRequest) -> str:
    """Return how commands reach the fleet: over the store, and in the long run over REST; tests override it."""
    return str(request.param)


@pytest.fixture
def lab(store: str, link: str, tmp_path: Path) -> Iterator[Lab]:
    """Yield a host that runs jobs."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    of_agent = {
        "REDSCHED_REDIS_URL": store,
        "REDSCHED_HOOK": f"{HOOK} --grace 1 processes",
        "REDSCHED_JOB_FOLDER": str(tmp_path / "jobs"),
        "REDSCHED_JOURNAL": str(tmp_path / "agent.sqlite"),
        "REDSCHED_WORK_WATCH_S": "0.1",
        "REDSCHED_POLL_S": "0.02",
    }
    run("init", environment={"REDSCHED_REDIS_URL": store}).check()
    with contextlib.ExitStack() as stack:
        agent = running("agent", "--fleet", str(tmp_path / "fleet.yaml"), environment=of_agent)
        stack.enter_context(agent)
        reach = {"REDSCHED_REDIS_URL": store}
        if link != STORE:
            authenticator, of_tenant = tenant(tmp_path) if link == TENANT else (None, {})
            api = stack.enter_context(served(Settings(redis_url=store, pick_from=1), authenticator))
            reach = {"REDSCHED_REDIS_URL": "", "REDSCHED_API": api, **of_tenant}
        made = Lab(tmp_path, reach)
        looks = ("host", "list", "--fits", "VCPU=1")
        reads = {"REDSCHED_REDIS_URL": store}
        wait_until_sync(lambda: "h1" in run(*looks, environment=reads).output, timeout=60, what="h1 takes claims")
        yield made
        run("claim", "release", "--project", "lab", "--yes", environment={"REDSCHED_REDIS_URL": store})
        for folder in (tmp_path / "jobs").glob("*/order"):
            wait_until_sync((folder.parent / "stopped").exists, timeout=60, what="the job has been stopped")


only_store = pytest.mark.parametrize("link", [STORE])
MINE = ("VCPU=1", "--project", "lab", "--id", "mine")


@only_store
@pytest.mark.usefixtures("redsched")
def test_an_early_end_stops_no_other_claim_with_this_id(store: str) -> None:
    """Ctrl-C may come before the fleet has answered: that another claim has the id is not known then."""
    job = Request({"VCPU": 1}, count=2, claim_ids=("web", "mine"), payload={"argv": ["date"]})

    async def left() -> list[str]:
        async with Scheduler.connect(store, Settings(), on_demand=True) as fleet:
            await fleet.select(Request({"VCPU": 1}, claim_ids=("web",), payload={"argv": ["serve"]}))
            await fleet.select(replace(job, count=1, claim_ids=("mine",)))
            await stop(fleet, job, is_placed=False)
            return [one.claim_id for one in (await fleet.claims.list()).items]

    assert asyncio.run(left()) == ["web"]


@pytest.mark.parametrize("status", [0, 3])
def test_it_prints_the_log_and_ends_with_the_exit_status(lab: Lab, status: int) -> None:
    ran = lab.run(*MINE, "--", "sh", "-c", f"echo one; echo two >&2; exit {status}")
    assert (ran.exit_code, sorted(ran.output.splitlines())) == (status, ["one", "two"])
    assert ran.errors.splitlines()[-1] == f"redsched: mine has ended, exit status {status}"
    ended = lab.claim("mine")
    assert (ended["state"], ended["end_reason"]) == ("ended", "work-ended")
    assert ended["reason"]["text"].startswith(f"work-ended: exit status {status}, ")


def test_ctrl_c_stops_the_job(lab: Lab) -> None:
    """The log is followed while the job runs."""
    with lab.running(*MINE, "--", "sh", "-c", "echo begun; exec sleep 600") as process:
        wait_until_sync(lambda: process.lines == ["begun\n"], timeout=60, what="the log is shown")
        ran = process.end(signal.SIGINT)
    assert ran.exit_code == 130
    assert ran.errors.splitlines()[-1] == "redsched: stopping mine"
    assert lab.reaches("mine", "ended")["end_reason"] == "released"


@only_store
def test_a_job_whose_log_nobody_reads_any_more_is_stopped(lab: Lab) -> None:
    """As with `| head -1`."""
    job = ["run", *MINE, "--", "sh", "-c", "while echo on; do sleep 0.05; done"]
    command = subprocess.Popen([*COMMAND, *job], env={**os.environ, **lab.environment}, stdout=subprocess.PIPE)
    with command as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        process.stdout.close()
    assert lab.reaches("mine", "ended")["end_reason"] == "released"


def test_detached_it_prints_the_id_and_the_job_goes_on(lab: Lab) -> None:
    ran = lab.run("VCPU=1", "--project", "lab", "--detach", "--", "sleep", "600").check()
    assert lab.reaches(ran.output.strip(), "active")["payload"]["argv"] == ["sleep", "600"]


def test_ctrl_c_leaves_a_job_running_that_an_earlier_call_has_started(lab: Lab) -> None:
    """The same command with the same id is attached to it, and says so."""
    job = (*MINE, "--", "sh", "-c", "echo begun; exec sleep 600")
    lab.run(*MINE, "--detach", *job[len(MINE) :]).check()
    with lab.running(*job) as process:
        wait_until_sync(lambda: process.lines == ["begun\n"], timeout=60, what="the log is shown")
        ran = process.end(signal.SIGINT)
    assert ran.exit_code == 130
    said = ran.errors.splitlines()
    assert said[0] == "redsched: mine was started by an earlier call: Ctrl-C leaves it running"
    assert said[-1] == "redsched: mine goes on. To stop it: redsched claim release mine"
    assert lab.claim("mine")["state"] == "active"


# -- logs


def test_the_log_of_a_detached_job_is_shown_later(lab: Lab) -> None:
    """Its claim says where it is, while it runs and once it has ended."""
    go = lab.folder / "go"
    lab.run(*MINE, "--detach", "--", "sh", "-c", f"echo one; until [ -e {go} ]; do sleep 0.02; done; exit 3").check()
    token = lab.reaches("mine", "active")["token"]
    where = f"h1:{lab.folder}/jobs/{token}/log"
    assert f"log: {where}" in lab.command("claim", "show", "mine").check().output.splitlines()
    wait_until_sync(lambda: lab.command("logs", "mine").check().output == "one\n", timeout=60, what="it has begun")
    with running("logs", "mine", "-f", environment=lab.environment) as process:
        wait_until_sync(lambda: process.lines == ["one\n"], timeout=60, what="the log is shown")
        go.touch()
        ran = process.wait()
    assert (ran.exit_code, ran.output) == (0, "one\n")
    assert ran.errors.splitlines()[-1] == "redsched: mine has ended, exit status 3"
    assert lab.claim("mine")["log"] == where
    assert lab.command("logs", "mine").check().output == "one\n"
    Path(where.removeprefix("h1:")).unlink()
    elsewhere = f"claim mine has its log on h1, in {where[3:]}: it cannot be read here (No such file or directory)"
    lab.command("logs", "mine").check_failed(4, elsewhere)
    lab.command("logs", "mine", "-f").check_failed(4, elsewhere)


@only_store
def test_ctrl_c_ends_the_view_of_a_log_and_not_the_job(lab: Lab) -> None:
    lab.run(*MINE, "--detach", "--", "sh", "-c", "echo one; exec sleep 600").check()
    with running("logs", "mine", "--follow", environment=lab.environment) as process:
        wait_until_sync(lambda: process.lines == ["one\n"], timeout=60, what="the log is shown")
        assert process.end(signal.SIGINT).exit_code == 130
    assert lab.claim("mine")["state"] == "active"


def test_a_repeated_call_whose_job_has_ended_has_its_outcome(lab: Lab) -> None:
    """Its answer may have been lost. Another command is another request."""
    job = (*MINE, "--", "sh", "-c", "echo out; exit 7")
    assert lab.run(*job).exit_code == 7
    again = lab.run(*job)
    assert (again.exit_code, again.output) == (7, "out\n")
    assert again.errors.splitlines() == [
        "redsched: mine was run by an earlier call, and this is its outcome: use another --id to run it again",
        "redsched: mine has ended, exit status 7",
    ]
    lab.run(*MINE, "--", "true").check_failed(2, "exists with other content")


@pytest.mark.parametrize("link", [TENANT])
def test_a_tenant_who_sees_no_hosts_runs_jobs(lab: Lab) -> None:
    """Without --id, the ids begin as those of the token must."""
    ran = lab.run("VCPU=1", "--count", "2", "--detach", "--", "true")
    assert (ran.exit_code, ran.errors) == (0, "")
    assert [one.startswith("ann-job-") for one in ran.output.split()] == [True, True]
    lab.run(*MINE[:3], "--id", "mine", "--", "true").check_failed(6, "does not begin with 'ann-'")
    ran = lab.run(*MINE[:3], "--id", "ann-mine", "--", "sh", "-c", "echo seen; exit 3")
    assert (ran.exit_code, ran.output) == (3, "seen\n")
    with lab.running(*MINE[:3], "--id", "ann-other", "--", "sleep", "600") as process:
        wait_until_sync(lambda: "ann-other runs on h1" in "".join(process.error_lines), timeout=60)
        assert process.end(signal.SIGTERM).exit_code == 130
    assert lab.reaches("ann-other", "ended")["end_reason"] == "released"


# -- what the job gets


@only_store
def test_the_job_has_its_folder_its_variables_and_its_gpus(lab: Lab) -> None:
    gpu = ("--group", "{name: a, resources: {CUSTOM_GPU_MILLI: 1000}}")
    words = (*MINE, *gpu, "--env", "A=b c", "--env", "REDSCHED_REDIS_URL")
    shown = "pwd; echo $A.$REDSCHED_REDIS_URL.$CUDA_VISIBLE_DEVICES"
    ran = lab.run(*words, "--", "sh", "-c", shown)
    assert ran.exit_code == 0
    folder, variables = ran.output.splitlines()
    assert folder == os.getcwd()
    assert variables in [f"b c.{lab.environment['REDSCHED_REDIS_URL']}.{gpu}" for gpu in (0, 1)]
    ran = lab.run("VCPU=1", "--project", "lab", "--cwd", "", "--", "pwd")
    assert Path(ran.output.strip()).parents[1] == lab.folder / "jobs"


@only_store
def test_words_behind_the_dashes_are_the_jobs_own(lab: Lab) -> None:
    ran = lab.run(*MINE, "--", "printf", "%s\\n", "--detach", "--", "VCPU=2", "-n", "")
    assert (ran.exit_code, ran.output) == (0, "--detach\n--\nVCPU=2\n-n\n\n")


@only_store
def test_several_places_are_one_job(lab: Lab) -> None:
    """Each knows its number; the exit status is the highest."""
    ran = lab.run(*MINE, "-n", "2", "--", "sh", "-c", "echo $JOB_CLAIM $JOB_RANK of $JOB_SIZE; exit $((4 + JOB_RANK))")
    assert (ran.exit_code, sorted(ran.output.splitlines())) == (5, ["mine-0 0 of 2", "mine-1 1 of 2"])


# -- jobs that do not end by themselves, or do not begin


@pytest.mark.parametrize("link", [REST])
def test_a_job_that_fails_is_run_again_until_it_succeeds(lab: Lab) -> None:
    """The scheduler of the API places it again."""
    job = f"cd {lab.folder}; echo 1 >> tries; wc -l < tries; until [ -e go ]; do sleep 0.02; done; [ -e again ]"
    with lab.running(*MINE, "--requeue", "--", "sh", "-c", job) as process:
        wait_until_sync(lambda: process.lines == ["1\n"], timeout=60, what="the first log is shown")
        (lab.folder / "go").touch()
        wait_until_sync(lambda: lab.claim("mine")["reason"] is not None, timeout=60, what="it has failed")
        (lab.folder / "again").touch()
        ran = process.wait()
    assert (ran.exit_code, ran.output) == (0, "1\n2\n")
    assert "mine waits to be placed again: work-ended: exit status 1" in ran.errors
    assert (lab.claim("mine")["on_exit"], lab.claim("mine")["gang_on_exit"]) == ("replace", "keep")


@only_store
def test_a_gang_is_run_again_as_a_whole(lab: Lab) -> None:
    lab.run(*MINE, "-n", "2", "--requeue", "--detach", "--", "sleep", "600").check()
    found = lab.reaches("mine-1", "active")
    assert (found["on_exit"], found["gang_on_exit"]) == ("replace", "replace")


@only_store
def test_a_job_whose_time_is_up_ends_with_124(lab: Lab) -> None:
    ran = lab.run(*MINE, "--max-runtime", "1", "--", "sleep", "600")
    assert ran.exit_code == TIME_IS_UP
    assert "mine has ended, max-runtime: its max_runtime_s of 1 s has passed" in ran.errors


@pytest.mark.parametrize("link", [REST])
def test_a_job_that_cannot_be_started_says_why(lab: Lab) -> None:
    ran = lab.run(*MINE, "--", "no-such-command")
    assert ran.exit_code == NO_STATUS
    assert "mine has ended, failed: " in ran.errors
    assert "could not be started: no-such-command: [Errno 2]" in ran.errors
    for options in ((), ("-f",)):
        lab.command("logs", "mine", *options).check_failed(4, "claim mine has no log: its work never ran")


@only_store
def test_a_job_that_fits_nowhere_is_refused(lab: Lab) -> None:
    lab.run("VCPU=64", "--", "true").check_failed(3, "none of 1 hosts can take 64 VCPU")


# -- without an agent


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("VCPU=1",), "which command is to run is missing"),
        (("VCPU=1", "--"), "which command is to run is missing"),
        (("VCPU=1", "--env", "NOT_SET_HERE", "--", "true"), "--env NOT_SET_HERE has no value"),
        (("VCPU=1", "--id", "a/b", "--", "true"), "claim id 'a/b'"),
        (("--", "true"), "the request is empty"),
        (("VCPU=1", "--", "x" * 16_384), "at most 16384 are allowed"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: tuple[str, ...], says: str) -> None:
    run("run", *arguments, environment={"REDSCHED_REDIS_URL": "redis://127.0.0.1:1"}).check_failed(2, says)


class Answers:
    """A fleet that answers with these claims, one after the other."""

    def __init__(self, *answers: Claim | RedschedError) -> None:
        self._answers = iter(answers)

    async def get(self, _: str) -> Claim:
        answer = next(self._answers)
        if isinstance(answer, RedschedError):
            raise answer
        return answer

    @property
    def fleet(self) -> Fleet:
        made: Any = SimpleNamespace(claims=self)
        return made  # type: ignore[no-any-return]


def claim(state: ClaimStatus, end_reason: EndReason | None = None, reason: str = "", log: str = "") -> Claim:
    placement = Placement(TOKEN, TOKEN, TOKEN, "h1", state, {"VCPU": 1})
    return Claim(
        "mine",
        "c1",
        "h1",
        state,
        TOKEN,
        {"VCPU": 1},
        end_reason=end_reason,
        reason=Reason(1, "h1", TOKEN, reason) if reason else None,
        placements=() if state is ClaimStatus.ENDED else (placement,),
        log=log,
    )


ACTIVE = claim(ClaimStatus.ACTIVE)
DONE = claim(ClaimStatus.ENDED, EndReason.WORK_ENDED, "work-ended: exit status 7, no process 5 is left")


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that follows a fleet's answers, without pauses, and returns exit status and output."""
    monkeypatch.setattr(following, "EVERY_S", 0)

    async def run_through(*answers: Claim | RedschedError) -> tuple[int, str]:
        output = BytesIO()
        status = await follow(Answers(*answers).fleet, [Follower("mine", output)])
        return status, output.getvalue().decode()

    return run_through


async def test_a_job_that_ended_before_it_was_looked_at_shows_its_log(followed: Any, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("all of it\n")
    assert await followed(replace(DONE, log=f"h1:{tmp_path}/log")) == (7, "all of it\n")


async def test_what_becomes_of_a_job_is_said_in_order(followed: Any, capfd: Any, tmp_path: Path) -> None:
    """Where it runs before its output, once, and its exit status after it."""
    (tmp_path / "log").write_text("all of it\n")
    seen = [replace(one, log=f"h1:{tmp_path}/log") for one in (ACTIVE, ACTIVE, DONE)]
    assert (await followed(claim(ClaimStatus.STARTING), *seen)) == (7, "all of it\n")
    said = ["mine starts on h1", "mine runs on h1", "mine has ended, exit status 7"]
    assert capfd.readouterr().err.splitlines() == [f"redsched: {one}" for one in said]


async def test_a_log_that_cannot_be_read_here_is_named_once(followed: Any, capfd: Any, tmp_path: Path) -> None:
    """As the agent calls it, also if the job has ended at the first look. A pipe is no log."""
    os.mkfifo(tmp_path / "log")
    seen = [replace(one, log=f"h1:{tmp_path}/log") for one in (ACTIVE, ACTIVE, DONE)]
    where = f"redsched: mine has its log on h1, in {tmp_path}/log: it cannot be read here (it is no file)\n"
    for some in (seen, seen[-1:]):
        assert await followed(*some) == (7, "")
        assert capfd.readouterr().err.count(where) == 1


async def test_an_outage_is_said_once_and_passes(followed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    away = StoreUnavailable("away")
    assert (await followed(ACTIVE, away, away, DONE))[0] == 7
    assert capsys.readouterr().err.count("redsched: trying again, and the job goes on: away\n") == 1


@pytest.mark.parametrize("error", [SchemaMismatch("another release"), NotFound("gone")], ids=type)
async def test_what_does_not_pass_ends_it(followed: Any, error: RedschedError) -> None:
    with pytest.raises(type(error)):
        await followed(ACTIVE, error)


@pytest.mark.parametrize(
    ("end_reason", "reason", "status"),
    [
        (EndReason.WORK_ENDED, "work-ended: no process 5 is left", NO_STATUS),
        (EndReason.RELEASED, "work-ended: exit status 0", NO_STATUS),
        (EndReason.MAX_RUNTIME, "its max_runtime_s of 5 s has passed", TIME_IS_UP),
        (EndReason.FAILED, "", NO_STATUS),
    ],
)
async def test_only_a_job_that_ended_by_itself_has_a_status(
    followed: Any, capsys: pytest.CaptureFixture[str], end_reason: EndReason, reason: str, status: int
) -> None:
    """The last reason of a claim that was released may be that of an earlier run."""
    assert (await followed(claim(ClaimStatus.ENDED, end_reason, reason)))[0] == status
    assert f"mine has ended, {end_reason}" in capsys.readouterr().err
