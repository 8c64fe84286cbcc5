"""Verbs on one claim or host, as an operator uses them: what they print, and their exit codes."""

import json
import re
from typing import Any

import pytest
import redis

from tests.cli.conftest import Redsched

BOTH_LINKS = True


@pytest.fixture(autouse=True)
def _best_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Always choose the best host, which is h1, since it has more capacity than h2."""
    monkeypatch.setenv("REDSCHED_PICK_FROM", "1")


def claimed(redsched: Redsched) -> dict[str, Any]:
    """Place a claim `mine` of 2 VCPU on h1, and return the selection."""
    shown = redsched("select", "VCPU=2", "--id", "mine", "--json").check()
    return dict(shown.json()["selections"][0])


def test_move_says_where_to_and_the_list_shows_both(redsched: Redsched) -> None:
    assert claimed(redsched)["host"] == "h1"
    shown = redsched("claim", "move", "mine", "--to", "h2", "--live", "--deadline", "60").check().output
    assert shown == "mine is claimed on h2, and leaves its present host once it runs there\n"
    heads, claim = redsched("claim", "list").check().output.splitlines()
    assert heads.split() == ["CLAIM", "STATE", "HOST", "AMOUNTS", "PROJECT"]
    assert claim.split() == ["mine", "claimed", "h1", "to", "h2", "VCPU=2", "-"]
    target = json.loads(redsched("claim", "move", "mine", "--json").check().output)
    assert (target["claim_id"], target["host"]) == ("mine", "h2")
    assert redsched("claim", "confirm", "mine", "--token", target["token"]).check().output == "mine is active on h2\n"


def test_fail_of_a_target_leaves_the_claim_where_it_runs(redsched: Redsched) -> None:
    """This holds with and without --no-alternate; --to is refused with a hint."""
    found = claimed(redsched)
    redsched("claim", "confirm", "mine", "--token", found["token"]).check()
    for option in ((), ("--no-alternate",)):
        target = redsched("claim", "move", "mine", "--to", "h2", "--json").check().json()["token"]
        redsched("claim", "fail", "mine", "--token", target, "--to", "h3").check_failed(3, "move it again")
        shown = redsched("claim", "fail", "mine", "--token", target, *option).check().output
        assert shown == "mine is active on h1 now\n"


def test_fail_names_the_next_host(redsched: Redsched) -> None:
    claimed(redsched)
    assert "is claimed on h2 now" in redsched("claim", "fail", "mine").check().output
    redsched("claim", "fail", "mine").check_failed(3, "has failed and is released", "none of 2 hosts")


def test_fail_may_only_end_it(redsched: Redsched) -> None:
    token = claimed(redsched)["token"]
    shown = redsched("claim", "fail", "mine", "--no-alternate", "--token", token).check().output
    assert shown == "mine has failed on h1\n"


def test_renew_and_resize(redsched: Redsched) -> None:
    claimed(redsched)
    assert redsched("claim", "renew", "mine", "--lease", "10m").check().output == "mine is claimed on h1\n"
    assert redsched("claim", "resize", "mine", "VCPU=3").check().output == "mine holds VCPU=3 of h1\n"
    redsched("claim", "resize", "mine", "VCPU=99").check_failed(3, "no room for 99 VCPU")


def test_shelve_and_unshelve(redsched: Redsched) -> None:
    claimed(redsched)
    assert redsched("claim", "shelve", "mine").check().output == "mine is shelved\n"
    assert "shelved" in redsched("claim", "show", "mine").check().output
    assert redsched("claim", "unshelve", "mine").check().output == "mine is claimed on h1\n"


def test_select_until_active_without_an_agent_is_exit_code_3(redsched: Redsched) -> None:
    ran = redsched("select", "VCPU=1", "--until", "active", "--confirm-timeout", "1")
    assert (ran.exit_code, ran.output) == (3, "")
    assert ran.errors.splitlines()[-1].split()[-5:] == ["h1", "not-confirmed", "within", "1", "s"]
    assert redsched("claim", "list").check().output == "no claims\n"


def test_a_host_that_is_emptied_says_what_cannot_leave(redsched: Redsched) -> None:
    redsched("select", "VCPU=6", "--id", "mine").check()
    redsched("claim", "confirm", "mine").check()
    drained = redsched("host", "drain", "h1", "--move").check().output.splitlines()
    assert drained == ["h1 is draining", "its claims are being moved: `redsched host show h1` shows the progress"]
    shown = redsched("host", "show", "h1").check().output
    assert "its claims are being moved to other hosts" in shown
    assert re.search("^mine\tnone of 2 hosts can take 6 VCPU", shown, re.MULTILINE)
    lost = redsched("host", "write-off", "h1", "--evacuate", "--force", "--yes").check().output.splitlines()
    assert lost == ["h1 is written off", "its claims are being moved: `redsched host show h1` shows the progress"]
    redsched("claim", "release", "mine").check()
    shown = redsched("host", "show", "h1").check().output
    assert "no claims are left on it" in shown
    assert "being" not in shown


def test_an_evacuation_waits_until_the_host_is_empty(redsched: Redsched) -> None:
    redsched("select", "VCPU=6", "--id", "mine").check()
    redsched("claim", "confirm", "mine").check()
    redsched("host", "write-off", "h1", "--wait", "1").check_failed(
        2, "`redsched host write-off h1 --evacuate --wait 1`"
    )
    shown = redsched("host", "write-off", "h1", "--evacuate", "--force", "--yes", "--wait", "1")
    assert (shown.exit_code, "h1 is not empty after 1 s" in shown.errors) == (3, True)
    assert shown.output.splitlines()[0] == "h1 is written off"
    redsched("claim", "release", "mine").check()
    shown = redsched("host", "write-off", "h1", "--evacuate", "--force", "--yes", "--wait", "60").check()
    assert shown.output == "h1 is written off\nh1 is empty\n"


def test_a_drained_host_says_which_moves_failed_and_why(redsched: Redsched, store: str) -> None:
    """The move has failed just now, and many times: otherwise the sweep of the next command would move the claim."""
    token = claimed(redsched)["token"]
    redsched("claim", "confirm", "mine", "--token", token).check()
    with redis.Redis.from_url(store, protocol=2) as client:
        now_ms = int(client.time()[0]) * 1000
        client.hset("rs:{c1}:claim:mine", mapping={"failed_moves": 30, "move_failed_at_ms": now_ms})
    redsched("host", "drain", "h1", "--move").check()
    heads, failed = redsched("host", "show", "h1").check().output.splitlines()[2:4]
    assert heads.split("\t") == ["CLAIM", "FAILED MOVES", "NEXT MOVE", "LAST FAILURE"]
    assert re.fullmatch(r"mine\t30\t[0-9T:.-]+Z\t-", failed)
    (shown,) = redsched("host", "show", "h1", "--json").check().json()["failed_moves"]
    assert (shown["claim_id"], shown["count"], shown["reason"]) == ("mine", 30, "")


def test_a_drain_waits_until_the_host_is_empty_and_says_how_far_it_is(redsched: Redsched) -> None:
    """It prints its progress in lines; the exit code is 3 if the host is not empty in time."""
    redsched("select", "VCPU=6", "--id", "mine").check()
    redsched("claim", "confirm", "mine").check()
    shown = redsched("host", "drain", "h1", "--move", "--wait", "1")
    assert (shown.exit_code, "h1 is not empty after 1 s" in shown.errors) == (3, True)
    head, progress = shown.output.splitlines()[:2]
    assert head == "h1 is draining"
    assert progress.startswith("h1: 1 claim left, 1 unmovable: mine: none of")
    assert progress.endswith("nearest h2: 2 VCPU less")
    redsched("claim", "release", "mine", "--force", "--yes").check()
    assert redsched("host", "drain", "h1", "--wait", "60").check().output == "h1 is draining\nh1 is empty\n"


def test_a_drain_says_what_becomes_of_the_rest_at_its_deadline(redsched: Redsched) -> None:
    redsched("select", "VCPU=6", "--id", "mine").check()
    redsched("host", "drain", "h1", "--deadline", "60").check_failed(2, "`redsched host drain h1 --move --deadline 60`")
    redsched("host", "drain", "h1", "--then", "stop").check_failed(
        2, "`redsched host drain h1 --move --deadline 600 --then stop`"
    )
    redsched("host", "drain", "h1", "--move", "--deadline", "60", "--then", "stop").check()
    assert "then stop the remaining claims" in redsched("host", "show", "h1").check().output
    kept = redsched("host", "drain", "h1", "--move", "--deadline", "1", "--wait", "30")
    assert (kept.exit_code, "has passed, with 1 claim left on it" in kept.errors) == (3, True)
    assert "the remaining claims stay" in redsched("host", "show", "h1").check().output
    shown = (
        redsched("host", "drain", "h1", "--move", "--deadline", "1", "--then", "stop", "--wait", "30").check().output
    )
    assert shown.splitlines()[-1] == "h1 is empty"
    assert "host h1 was drained" in redsched("claim", "show", "mine").check().output


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("claim", "move", "mine", "--token", "1-a.1", "--wait", "9999"), "--wait"),
        (("claim", "move", "a b"), "a b"),
        (("claim", "move", "mine", "--token", "x"), "token"),
        (("claim", "move", "mine", "--to", "x y", "--token", "1-a.1"), "hosts"),
        (("claim", "resize", "mine"), "CLASS=AMOUNT"),
        (("claim", "resize", "mine", "VCPU"), "NAME=VALUE"),
        (
            ("claim", "renew", "mine", "--lease", "0", "--token", "1-a.1"),
            "0 is not in the range from 1 to 86400 seconds",
        ),
        (("claim", "renew", "mine", "--lease", "2d", "--token", "1-a.1"), "2d is not in the range from 1 to 86400"),
        (("host", "drain", "h1", "--move", "--deadline", "5w"), "has the unit 'w': use s, m (minutes), h or d"),
        (("claim", "resize", "mine", "MEMORY_MB=4G", "--token", "1-a.1"), "ambiguous"),
        (("quota", "set", "web", "MEMORY_MB=1Ki"), "give a whole number"),
        (("select", "VCPU=1", "--until", "done"), "until"),
    ],
)
def test_malformed_is_exit_code_2(redsched: Redsched, arguments: tuple[str, ...], word: str) -> None:
    redsched(*arguments).check_failed(2, word)


@pytest.mark.parametrize("word", ["drain", "disable"])
def test_what_stays_on_a_host_that_takes_no_claims_is_said_and_the_status_names_it(
    redsched: Redsched, word: str
) -> None:
    redsched("select", "VCPU=1", "--host", "h1", "--id", "web").check()
    first, second = redsched("host", word, "h1", "--reason", "new GPUs").check().output.splitlines()
    status = "draining" if word == "drain" else "disabled"
    assert first == f"h1 is {status}"
    assert second == (
        "its claim stays until it ends: `redsched claim list --host h1` shows it; `redsched host drain h1 --move` "
        "moves it to other hosts"
    )
    lines = redsched("status").output.splitlines()
    assert f"  {status:<12}h1 (new GPUs): 1 claim stays until it ends" in lines
    assert redsched("status", "--json").json()["cells"][0]["closed"] == [
        {"name": "h1", "status": status, "claims": 1, "moves": False, "reason": "new GPUs"}
    ]
    redsched("host", "enable", "h1").check()
    assert not [line for line in redsched("status").output.splitlines() if line.startswith(f"  {status}")]


def test_a_host_is_written_off_with_a_reason(redsched: Redsched) -> None:
    redsched("host", "write-off", "h1", "--force", "--yes", "--reason", "its mainboard is broken").check()
    assert "reason: its mainboard is broken" in redsched("host", "show", "h1").check().output.splitlines()
    redsched("host", "write-off", "h1", "--force", "--yes", "--reason", "sold").check()
    assert "reason: sold" in redsched("host", "show", "h1").check().output.splitlines()


def test_the_reason_of_a_drain_is_shown_until_the_host_is_enabled(redsched: Redsched) -> None:
    redsched("host", "drain", "h1", "--reason", "new GPUs").check()
    assert "reason: new GPUs" in redsched("host", "show", "h1").check().output.splitlines()
    assert redsched("host", "list", "--json").check().json()["hosts"][0]["status_reason"] == "new GPUs"
    shown = redsched("host", "list", "-o", "wide").check().output
    heads, first, second = (line.split("\t") for line in shown.splitlines())
    assert (first[heads.index("REASON")], second[heads.index("REASON")]) == ("new GPUs", "-")
    redsched("host", "enable", "h1").check()
    assert "new GPUs" not in redsched("host", "show", "h1").check().output


@pytest.mark.usefixtures("needs_both")
def test_a_request_that_waits_says_what_for(redsched: Redsched) -> None:
    waited = redsched("select", "VCPU=9", "--wait", "1")
    why = "none of 2 hosts can take 9 VCPU: 2 short of VCPU"
    first, last = waited.errors.splitlines()
    assert first.startswith(f"redsched: waiting up to 1 s for room: {why}")
    assert last.startswith(f"redsched: {why}")
    assert waited.exit_code == 3
