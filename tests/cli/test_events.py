"""`redsched events`: a table, JSON, and JSON lines that follow the log until the command is ended."""

import asyncio
import json
import os
import re
import signal
import subprocess

from redsched.operate.observe.recorder import Recorder
from redsched.settings import Settings
from redsched.store.store import Store
from tests.cli.conftest import Redsched
from tests.cli.parts import COMMAND, running
from tests.support.waiting import wait_until_sync

BOTH_LINKS = True


def test_events_of_one_claim_are_shown_and_followed(redsched: Redsched, store: str) -> None:
    """The log is followed from its start while another process claims; SIGTERM ends the command with exit code 0."""
    environment = {"REDSCHED_REDIS_URL": store}
    with running("api", "--port", "0", environment=environment):  # a scheduler, which records the events
        following = subprocess.Popen(
            [*COMMAND, "events", "--follow", "--json", "--claim", "mine", "--after", "c1:0-0"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        try:
            redsched("select", "VCPU=2", "--host", "h1", "--id", "mine", "--project", "web").check()
            assert following.stdout is not None
            told = json.loads(following.stdout.readline())
            assert (told["kind"], told["claim"], told["project"], told["slots"]) == (
                "claimed",
                "mine",
                "web",
                {"VCPU": 2},
            )
            redsched("claim", "release", "mine").check()
            assert json.loads(following.stdout.readline())["kind"] == "released"
            following.send_signal(signal.SIGTERM)
            assert following.wait(timeout=60) == 0
        finally:
            following.kill()
            following.communicate()
    shown = redsched("events", "--claim", "mine").check().output.splitlines()
    assert shown[0].split()[:3] == ["TIME", "KIND", "CLAIM"]
    assert [line.split()[1:5] for line in shown[1:]] == [
        ["claimed", "mine", "h1", "web"],
        ["released", "mine", "h1", "web"],
    ]
    page = redsched("events", "--claim", "mine", "--limit", "1", "--after", "c1:0-0", "--json").check().json()
    assert [one["kind"] for one in page["events"]] == ["claimed"]
    assert page["next"]
    redsched("events", "--after", "nonsense").check_failed(2, "nonsense")
    cut = redsched("events", "--claim", "mine", "--limit", "1")
    assert (cut.exit_code, cut.errors) == (0, "the latest 1 event: --limit shows more, --older-than earlier ones\n")
    assert redsched("events", "--claim", "mine", "--limit", "3").check().errors == ""
    assert redsched("events", "--claim", "mine", "--limit", "1", "-o", "name").check().errors == ""


def test_a_claim_and_its_events_show_why_it_failed(redsched: Redsched, store: str) -> None:
    """The table has the reason on one line; `claim show` prints its lines as they are."""
    arguments = (
        "select",
        "VCPU=2",
        "--host",
        "h1",
        "--id",
        "mine",
        "--on-exit",
        "keep",
        "--max-attempts",
        "1",
        "--json",
    )
    [found] = redsched(*arguments).check().json()["selections"]

    async def fail() -> None:
        async with Store.connect(store) as opened:
            cell = opened.cell("c1")
            await cell.claims.confirm("h1", "mine", found["token"])
            await cell.claims.work_ended("h1", "mine", found["token"], "no process 7 is left")
            shown = redsched("claim", "show", "mine").check().output
            assert (
                redsched("claim", "list").check().output.splitlines()[1].startswith("mine\tactive (work ended)\th1\t")
            )
            assert re.search(r"^its work ended at 2.*Z \(\d+s\); on_exit is keep$", shown, re.MULTILINE)
            assert re.search(r"^last failure on h1 at 2.*Z \(\d+s\): no process 7 is left$", shown, re.MULTILINE)
            await cell.claims.fail("h1", "mine", found["token"], by_host=True, reason="exit code 3\nno more disks")
            await Recorder(cell, Settings()).record()

    asyncio.run(fail())
    shown = redsched("claim", "show", "mine").check().output
    assert re.search(r"^reason on h1 at 2.*Z \(\d+s\): exit code 3\nno more disks\n\Z", shown, re.MULTILINE)
    assert redsched("claim", "show", "mine", "--json").check().json()["reason"]["text"] == "exit code 3\nno more disks"
    failed = [
        line for line in redsched("events", "--claim", "mine").check().output.splitlines() if "\tfailed\t" in line
    ]
    assert failed[0].endswith("reason=exit code 3 no more disks")
    redsched("events", "--kind", "fialed").check_failed(2, "unknown kind 'fialed'")
    redsched("select", "VCPU=1", "--on-exit", "restart").check_failed(2, "--on-exit")


def test_events_are_filtered_by_age(redsched: Redsched, store: str) -> None:
    redsched("select", "VCPU=1", "--id", "mine").check()
    with running("api", "--port", "0", environment={"REDSCHED_REDIS_URL": store}):  # which records the events
        wait_until_sync(lambda: "mine" in redsched("events").check().output)
    assert "mine" in redsched("events", "--newer-than", "1h").check().output
    assert "mine" in redsched("events", "--newer-than", "1h", "--after", "c1:0-0").check().output
    assert "mine" not in redsched("events", "--older-than", "1h").check().output
    redsched("events", "--newer-than", "5", "--older-than", "10").check_failed(2, "no event is older than 10 s")
