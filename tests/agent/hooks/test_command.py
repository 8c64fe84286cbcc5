"""Hooks that are commands: their input, the output they may give, and that none can hang or flood the agent."""

import asyncio
import dataclasses
import json
import os
import signal
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError

from redsched import subprocesses
from redsched.agent.collectors.base import Named
from redsched.agent.hooks.base import (
    MAX_OUTPUT_BYTES,
    MAX_TAIL,
    HookFailed,
    HookNotRun,
    HookRequest,
    NoHook,
    Verb,
    named_in,
    output_tail,
)
from redsched.agent.hooks.command import CommandHook
from redsched.agent.machine.processes import start_mark
from redsched.agent.machine.usage import start_time
from redsched.agent.run import hook_of
from redsched.errors import InvalidRequest
from redsched.origin import Origin
from redsched.settings import Settings
from tests.agent.conftest import held_work
from tests.support.secret_watch import MARK
from tests.support.waiting import wait_until

WORK = held_work(
    "c1.a",
    "1-a.7",
    {"VCPU": 2},
    placed="1-a.5",
    project="web",
    owner="ann",
    consumer="x",
    named=Named(cgroup="a.slice", pids={7: 1.0}),
    origin=Origin("ci/münchen", "r-1"),
)
START = HookRequest(Verb.START, "c1", "h1", WORK)


def script(tmp_path: Path, body: str) -> str:
    """Write a hook in shell, and return its path."""
    path = tmp_path / "hook.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def hook(tmp_path: Path, body: str, timeout_s: float = 20.0) -> CommandHook:
    return CommandHook(script(tmp_path, body), timeout_s)


class Acted(CommandHook):
    """A hook whose time begins when its script has written the file `acted`, however slow the machine is."""

    def __init__(self, tmp_path: Path, body: str, timeout_s: float) -> None:
        super().__init__(script(tmp_path, body.replace("ACT;", f"touch {tmp_path}/acted;")), timeout_s)
        self._acted = tmp_path / "acted"

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        await wait_until(self._acted.exists, what="the script has acted")
        return await super()._wait(process)


@pytest.mark.parametrize("verb", Verb)
async def test_a_hook_gets_the_verb_the_claim_the_token_and_the_host(tmp_path: Path, verb: Verb) -> None:
    about = 'echo "$1 $REDSCHED_CLAIM_ID $REDSCHED_TOKEN $REDSCHED_PLACED $REDSCHED_HOST"'
    tell = hook(tmp_path, f'{about}; echo "$REDSCHED_ACTOR $REDSCHED_REQUEST_ID"; cat')
    told = (await tell.run(HookRequest(verb, "c1", "h1", WORK, ("h1", "h3", "h2")))).decode()
    first, cause, claim = told.split("\n", 2)
    assert first == f"{verb.value} c1.a 1-a.7 1-a.5 h1"
    assert cause == "ci/münchen r-1"
    assert json.loads(claim) == {
        "verb": verb.value,
        "claim_id": "c1.a",
        "token": "1-a.7",
        "placed": "1-a.5",
        "cell": "c1",
        "host": "h1",
        "slots": {"VCPU": 2},
        "project": "web",
        "owner": "ann",
        "consumer": "x",
        "actor": "ci/münchen",
        "request_id": "r-1",
        "alternates": ["h3", "h2"],
        "domain": "",
        "cgroup": "a.slice",
        "pids": [7],
        **({"former_slots": {}} if verb is Verb.RESIZE else {}),
    }


async def test_a_hook_does_not_get_the_environment_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That may hold passwords: a hook gets what any program needs, what a setting names, and its order."""
    monkeypatch.setenv("REDSCHED_REDIS_URL", f"redis://:{MARK}hook@store")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{MARK}aws")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("MY_REGION", "north")
    settings = Settings(hook=script(tmp_path, "/usr/bin/env"), hook_env="MY_REGION,NOT_SET")
    got = dict(line.split("=", 1) for line in (await hook_of(settings).run(START)).decode().splitlines())
    assert {"PATH", "LC_TIME", "MY_REGION", "REDSCHED_TOKEN"} <= set(got)
    assert not [name for name, value in got.items() if MARK in value or name == "REDSCHED_REDIS_URL"]


@pytest.mark.parametrize("names", ["REDSCHED_REDIS_URL", "a b", "X=1"])
def test_a_setting_cannot_pass_on_the_agents_settings(names: str) -> None:
    with pytest.raises(ValidationError, match="hook_env"):
        Settings(hook_env=names)


async def test_a_hook_gets_from_which_pools_the_claim_takes(tmp_path: Path) -> None:
    slots = {"numa0/PCPU": 2, "gpu0/CUSTOM_GPU_MILLI": 250, "pool:lic/CUSTOM_SEAT": 1}
    said = await hook(tmp_path, "cat").run(HookRequest(Verb.START, "c1", "h1", held_work("a", "1-a.7", slots)))
    assert json.loads(said)["slots"] == slots


async def test_a_command_may_have_arguments_of_its_own(tmp_path: Path) -> None:
    with_arguments = CommandHook(script(tmp_path, 'echo "$1|$2|$3"') + " --flag 'two words'", 20)
    assert await with_arguments.run(START) == b"--flag|two words|start\n"


async def test_an_exit_code_fails_it_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(HookFailed, match=r"start for c1\.a ended with exit code 3: no more disks"):
        await hook(tmp_path, "echo first >&2; echo 'no more disks' >&2; echo; exit 3").run(START)
    with pytest.raises(HookFailed, match="it printed nothing on stderr"):
        await hook(tmp_path, "exit 1").run(START)


async def reason_of(running: CommandHook) -> str:
    """Return the reason with which the hook fails."""
    with pytest.raises(HookFailed) as failed:
        await running.run(START)
    return failed.value.reason


async def test_the_reason_of_a_failure_has_the_exit_code_and_the_last_words(tmp_path: Path) -> None:
    """If the output is larger than a pipe or a reason can hold, its end is kept, not its beginning."""
    long = "i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo the end >&2; exit 7"
    what, _, said = (await reason_of(hook(tmp_path, long))).partition("\n")
    assert what.endswith("start for c1.a ended with exit code 7")
    assert said.endswith("0123456789\nthe end")
    assert len(said) == MAX_TAIL


async def test_the_reason_of_a_timeout_has_the_last_words_too(tmp_path: Path) -> None:
    reason = await reason_of(Acted(tmp_path, "echo waiting for the disk >&2; ACT; sleep 600", timeout_s=0.2))
    assert reason.endswith("took longer than 0.2 s and was ended\nwaiting for the disk")


async def test_a_failure_without_words_has_a_reason_of_one_line(tmp_path: Path) -> None:
    assert (await reason_of(hook(tmp_path, "exit 1"))).endswith("ended with exit code 1")


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"plain\ntwo lines\n\n", "plain\ntwo lines"),
        (b"\x1b[31mred\x1b[0m\ttab\x00nul\r\n", "[31mred [0m tab nul"),
        (b"not UTF-8: \xff\xfe", "not UTF-8: \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}x\N{LINE SEPARATOR}y".encode(), "x y"),
        ("\N{GRINNING FACE}".encode() * 600, "\N{GRINNING FACE}" * MAX_TAIL),
    ],
)
def test_last_words_are_plain_text(output: bytes, expected: str) -> None:
    """They contain nothing that moves a terminal's cursor or reverses a line."""
    assert output_tail(output) == expected


async def test_a_command_that_cannot_be_run_fails(tmp_path: Path) -> None:
    with pytest.raises(HookNotRun, match=r"cannot be run: .*No such file"):
        await CommandHook(str(tmp_path / "absent"), 20).run(START)


async def test_one_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    slow = Acted(tmp_path, f"sleep 600 & echo $! > {pids}; echo $$ >> {pids}; ACT; wait", timeout_s=0.2)
    with pytest.raises(HookFailed, match=r"longer than 0\.2 s"):
        await slow.run(START)
    await wait_until(lambda: not any(psutil.pid_exists(int(pid)) for pid in pids.read_text().split()))


async def test_one_that_does_not_heed_the_first_signal_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocesses, "GRACE_S", 0.1)
    stubborn = Acted(tmp_path, "trap '' TERM; ACT; while :; do sleep 0.05; done", timeout_s=0.2)
    with pytest.raises(HookFailed, match="longer than"):
        await stubborn.run(START)


async def test_a_cancelled_hook_leaves_nothing_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    running = asyncio.create_task(hook(tmp_path, f"echo $$ > {pids}; sleep 600").run(START))
    await wait_until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not psutil.pid_exists(int(pids.read_text()))


@pytest.mark.parametrize("turns", range(1, 6))
async def test_a_hook_cancelled_while_it_is_being_started_leaves_nothing_behind(tmp_path: Path, turns: int) -> None:
    """Its process may already exist before the event loop knows it, or before it is awaited."""
    before = psutil.Process().children()
    starting = asyncio.create_task(hook(tmp_path, "sleep 600").run(START))
    for _ in range(turns):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert psutil.Process().children() == before


async def test_work_left_in_the_background_does_not_hold_up_the_hook(tmp_path: Path) -> None:
    """The work holds the hook's stdout open, so the agent must not wait until stdout is closed."""
    named = named_in(await hook(tmp_path, 'sleep 600 & echo "pids: $!"').run(START))
    assert named is not None
    (pid,) = named.pids
    assert named.pids[pid] == start_time(pid)
    assert psutil.Process(pid).is_running(), "the hook's run is over, and its work lives on"
    os.kill(pid, signal.SIGKILL)


async def test_more_output_than_a_pipe_holds_is_read_and_cut(tmp_path: Path) -> None:
    loud = hook(tmp_path, "head -c 5000000 /dev/zero | tr '\\0' x; head -c 5000000 /dev/zero >&2; exit 0")
    assert await loud.run(START) == b"x" * MAX_OUTPUT_BYTES


async def test_input_that_nobody_reads_holds_up_nobody(tmp_path: Path) -> None:
    large = held_work("c1.a", "1-a.7", {f"CUSTOM_{number}": number for number in range(20_000)})
    assert await hook(tmp_path, "exit 0").run(HookRequest(Verb.START, "c1", "h1", large)) == b""


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    fine, broken = hook(tmp_path, "cat"), CommandHook(str(tmp_path / "absent"), 20)
    await fine.run(START)
    before = psutil.Process().num_fds()
    for _ in range(5):
        await fine.run(START)
        with pytest.raises(HookFailed):
            await broken.run(START)
    assert psutil.Process().num_fds() == before


async def test_no_hook_does_everything_at_once() -> None:
    assert await NoHook().run(START) == b""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"", None),
        (b"done\n", None),
        (b"\xff\xfe\x00 garbage \x80", None),
        (b"{not json", None),
        (b"{" * 60_000, None),
        (b"[1, 2]", None),
        (b"{}", None),
        (b'{"pids": "many", "cgroup": 7, "domain": null}', None),
        (b'{"pids": [0, -1, 1.5, true, "x", null]}', None),
        (b'{"pids": [999999999]}', Named(started={999999999: ""})),
        (b"pids: none\n", None),
        (b'{"domain": "vm-7", "more": 1}', Named(domain="vm-7")),
        (b"starting ...\ndomain: vm-7\n", Named(domain="vm-7")),
        (b"cgroup: machine.slice/a.scope", Named(cgroup="machine.slice/a.scope")),
        (b'{"cgroup": "../../proc"}', None),
        (b"cgroup: a.slice\nstatus_file: /jobs/1/status", Named(cgroup="a.slice", status_file="/jobs/1/status")),
        (b'{"cgroup": "a.slice", "status_file": "/jobs/../../etc/x"}', Named(cgroup="a.slice")),
        (b"cgroup: a.slice\nlog: /jobs/of ann/log", Named(cgroup="a.slice", log="/jobs/of ann/log")),
        (b'{"cgroup": "a.slice", "log": "log"}', Named(cgroup="a.slice")),
        (b'{"cgroup": "a.slice", "log": "/a\\nb"}', Named(cgroup="a.slice")),
        (b'{"cgroup": "a.slice", "log": "/a\\udc80"}', Named(cgroup="a.slice")),
        (b"x" * 100_000, None),
    ],
)
def test_what_a_hook_prints_names_work_or_is_ignored(output: bytes, expected: Named | None) -> None:
    assert named_in(output) == expected


def test_pids_get_the_start_times_of_their_processes() -> None:
    me = os.getpid()
    expected = Named(pids={me: start_time(me) or 0.0}, started={me: start_mark(me)})
    for output in (f"pids: {me} {me}, none", f'{{"pids": [{me}]}}', f'{{"pids": {me}}}', f'{{"pids": ["{me}"]}}'):
        assert named_in(output.encode()) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("   ", "blank"),
        ("a 'b", "cannot be read as a command"),
        ("http://", "is not a URL of a server"),
        ("http://host:port/", "is not a URL"),
        ("https://user:secret@host/", "must not contain a user name"),
    ],
)
def test_a_hook_that_cannot_be_is_reported_at_the_start(command: str, expected: str) -> None:
    with pytest.raises(InvalidRequest, match=expected):
        hook_of(Settings(hook=command))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("{}/absent start", "does not exist: correct REDSCHED_HOOK, or install the file"),
        ("./absent", "does not exist, in /.*: correct REDSCHED_HOOK"),
        ("{}", "is a directory"),
        ("{}/plain", "is not executable for this user: run `chmod [+]x {}/plain`"),
        ("no-such-command start", "is not a command in PATH, .*: correct REDSCHED_HOOK"),
    ],
)
def test_a_command_that_does_not_exist_is_refused_at_the_start(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    with pytest.raises(InvalidRequest, match=expected.format(tmp_path)):
        hook_of(Settings(hook=name.format(tmp_path)))


def test_an_empty_setting_is_no_hook() -> None:
    assert isinstance(hook_of(Settings()), NoHook)
    assert isinstance(hook_of(Settings(hook="true")), CommandHook)


async def test_the_start_of_a_move_gets_what_it_moves(tmp_path: Path) -> None:
    tell = hook(tmp_path, "cat")
    for moves in ({"host": "h9", "token": "1-a.3"}, None):
        work = dataclasses.replace(WORK, moves=moves or {})
        for verb in Verb:
            told = json.loads(await tell.run(HookRequest(verb, "c1", "h1", work)))
            assert told.get("moves") == (moves if verb is Verb.START else None)


async def test_what_is_to_be_resized_gets_both_amounts(tmp_path: Path) -> None:
    work = WORK.with_amounts({"VCPU": 4}, resizing_to={"VCPU": 1}, before={"VCPU": 4})
    told = json.loads(await hook(tmp_path, "cat").run(HookRequest(Verb.RESIZE, "c1", "h1", work)))
    assert (told["slots"], told["former_slots"]) == ({"VCPU": 1}, {"VCPU": 4})
