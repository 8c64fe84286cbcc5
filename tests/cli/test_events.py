"""`redsched events`: a table, JSON, and following as JSON lines until it is ended."""

import json
import os
import signal
import subprocess

from tests.cli.conftest import Redsched
from tests.cli.parts import COMMAND


def test_events_of_one_claim_are_shown_and_followed(redsched: Redsched, store: str) -> None:
    """The log is followed from the beginning, while another process claims; SIGTERM is the good end of it."""
    following = subprocess.Popen(
        [*COMMAND, "events", "--follow", "--json", "--claim", "mine", "--after", "c1:0-0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "REDSCHED_REDIS_URL": store},
    )
    try:
        redsched("select", "VCPU=2", "--host", "h1", "--id", "mine", "--project", "web").check()
        assert following.stdout is not None
        told = json.loads(following.stdout.readline())
        assert (told["kind"], told["claim"], told["project"], told["slots"]) == ("claimed", "mine", "web", {"VCPU": 2})
        redsched("release", "mine").check()
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
