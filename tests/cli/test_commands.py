"""The commands that use a store: what they print, and their exit codes."""

import asyncio
import os
import re
import subprocess

import pytest
import redis

from redsched.settings import Settings
from redsched.store.store import Store
from tests.cli.conftest import Redsched
from tests.cli.parts import COMMAND, run

BOTH_LINKS = True


def test_hosts_lists_with_filters(redsched: Redsched) -> None:
    shown = redsched("host", "list").check().output.splitlines()
    assert shown[0].split() == ["HOST", "ZONE", "STATUS", "CLAIMS", "FREE"]
    assert shown[1].split() == ["h1", "az1", "up", "0", "MEMORY_MB=16384", "VCPU=8"]
    assert [one["name"] for one in redsched("host", "list", "--zone", "az2", "--json").check().json()["hosts"]] == [
        "h2"
    ]
    assert redsched("host", "list", "--limit", "1").errors == "there are more: --after h1\n"
    assert "h1" not in redsched("host", "list", "--after", "h1").check().output


@pytest.mark.parametrize("option", [("--status", "disabled"), ("--zone", "az9"), ("--after", "h2")])
def test_no_hosts_by_a_filter_is_not_called_no_hosts_at_all(redsched: Redsched, option: tuple[str, str]) -> None:
    assert (
        redsched("host", "list", *option).check().output == "no hosts match these filters: leave them out to see all\n"
    )


def test_lost_hosts_can_be_listed(redsched: Redsched) -> None:
    """The status is the one that the list shows; the help and the error name every status."""
    redsched("host", "write-off", "h2", "--force", "--yes").check()
    assert [line.split()[:3] for line in redsched("host", "list", "--status", "lost").check().output.splitlines()] == [
        ["HOST", "ZONE", "STATUS"],
        ["h2", "az2", "lost"],
    ]
    assert "h2" not in redsched("host", "list", "--status", "disabled").check().output
    for shown in (redsched("host", "list", "--help").check().output, redsched("host", "list", "--status", "x").errors):
        assert all(status in shown for status in ("enabled", "disabled", "draining", "lost"))


def test_no_hosts_at_all_says_how_to_get_one(redsched: Redsched) -> None:
    for name in ("h1", "h2"):
        assert redsched("host", "remove", name, "--force", "--yes").check().output == f"{name} is removed\n"
    assert redsched("host", "list").check().output == "no hosts: start an agent with `redsched agent`, or report one\n"


def test_host_shows_one(redsched: Redsched) -> None:
    shown = redsched("host", "show", "h2").check().output
    assert "zone az2  up  0 claims" in shown
    assert "labels: rack=r4" in shown
    assert redsched("host", "show", "h2", "--json").check().json()["slots"]["VCPU"]["free"] == 4
    redsched("host", "show", "h9").check_failed(4, "h9")


def test_a_host_that_was_written_off_is_shown_as_lost(redsched: Redsched) -> None:
    redsched("host", "write-off", "h2", "--force", "--yes").check()
    assert "zone az2  lost  0 claims" in redsched("host", "show", "h2").check().output
    of_h2 = redsched("host", "list").check().output.splitlines()[2]
    assert of_h2.split()[:4] == ["h2", "az2", "lost", "0"]


def test_a_claim_from_select_to_release(redsched: Redsched) -> None:
    """The same id selected again returns the same claim."""
    arguments = ("select", "VCPU=2", "--zone", "az1", "--id", "mine", "--project", "web", "--json")
    [found] = redsched(*arguments).check().json()["selections"]
    assert (found["claim_id"], found["host"], found["slots"]) == ("mine", "h1", {"VCPU": 2})
    assert redsched(*arguments).check().json()["selections"] == [found]
    assert redsched("claim", "show", "mine", "--json").check().json()["project"] == "web"
    assert "mine\tclaimed\th1\t" in redsched("claim", "list", "--project", "web").check().output
    assert redsched("claim", "list", "--host", "h2").check().output == "no claims\n"
    redsched("claim", "release", "mine", "--token", "1-a.1").check_failed(3, "token")
    assert redsched("claim", "release", "mine", "--token", found["token"]).check().output == "mine is released\n"
    assert "released" in redsched("claim", "show", "mine").check().output


def test_select_shows_a_table(redsched: Redsched) -> None:
    shown = redsched("select", "VCPU=1", "--host", "h1", "--host", "h2", "--alternates", "1").check().output
    assert shown.splitlines()[0].split() == ["CLAIM", "HOST", "AMOUNTS", "ALTERNATES", "TOKEN"]
    assert len(shown.splitlines()) == 2


def test_select_says_how_many_hosts_are_tried(redsched: Redsched) -> None:
    redsched("select", "VCPU=1", "--id", "mine", "--max-attempts", "1").check()
    assert redsched("claim", "show", "mine", "--json").check().json()["max_attempts"] == 1
    redsched("select", "VCPU=1", "--id", "other").check()
    assert redsched("claim", "show", "other", "--json").check().json()["max_attempts"] == 3
    redsched("select", "VCPU=1", "--max-attempts", "0").check_failed(2, "--max-attempts")


def test_select_limits_how_long_the_work_may_run(redsched: Redsched) -> None:
    redsched("select", "VCPU=1", "--id", "mine", "--max-runtime", "2h").check()
    found = redsched("claim", "show", "mine", "--json").check().json()
    assert (found["max_runtime_s"], found["runtime_deadline_ms"]) == (7200, found["claimed_at_ms"] + 7_200_000)
    shown = redsched("claim", "show", "mine").check().output
    assert re.search(r"^runtime: at most 7200 s, until 2.*Z \(in \w+\)$", shown, re.MULTILINE)
    redsched("select", "VCPU=1", "--id", "other").check()
    assert "runtime" not in redsched("claim", "show", "other").check().output
    redsched("select", "VCPU=1", "--max-runtime", "31d").check_failed(2, "--max-runtime")


def test_select_gives_a_payload_to_the_hook(redsched: Redsched) -> None:
    redsched("select", "VCPU=1", "--id", "mine", "--payload", '{"argv": ["a", "\u00fc"], "pause_s": "5m"}').check()
    payload = {"argv": ["a", "\u00fc"], "pause_s": "5m"}
    assert redsched("claim", "show", "mine", "--json").check().json()["payload"] == payload
    shown = redsched("claim", "show", "mine").check().output
    assert 'payload: {"argv": ["a", "\u00fc"], "pause_s": "5m"}\n' in shown
    redsched("select", "VCPU=1", "--id", "empty", "--payload", "{}").check()
    assert redsched("claim", "show", "empty", "--json").check().json()["payload"] == {}
    redsched("select", "VCPU=1", "--id", "none").check()
    assert "payload" not in redsched("claim", "show", "none").check().output


def test_a_long_payload_is_cut_off_unless_json_is_asked_for(redsched: Redsched) -> None:
    redsched("select", "VCPU=1", "--id", "mine", "--payload", f'"{"x" * 1000}"').check()
    assert f'payload: "{"x" * 299}... (--json shows all of it)\n' in redsched("claim", "show", "mine").check().output


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ("{argv: [a]}", "--payload is not JSON: "),
        ("NaN", "payload is not a JSON value"),
        (f'"{"x" * 16_384}"', "payload has 16386 bytes as JSON: at most 16384 are allowed"),
    ],
)
def test_a_payload_that_cannot_be_kept_is_refused(redsched: Redsched, payload: str, says: str) -> None:
    redsched("select", "VCPU=1", "--payload", payload).check_failed(2, says)


def test_a_dry_run_claims_nothing(redsched: Redsched) -> None:
    shown = redsched("select", "VCPU=1", "--dry-run", "-n", "2", "--json").check().json()["selections"]
    assert [one["claim_id"] for one in shown] == [None, None]
    assert redsched("claim", "list").check().output == "no claims\n"


def test_every_option_of_a_selection_reaches_it(redsched: Redsched) -> None:
    """Most options exclude all hosts but one, or all of them."""
    only = {"--label": "rack=r4", "--zone": "az2", "--host": "h2", "--exclude-host": "h1"}
    for option, value in only.items():
        found = redsched("select", "VCPU=1", option, value, "--dry-run", "--json").check().json()
        assert found["selections"][0]["host"] == "h2", option
    for option, value in {"--require": "CUSTOM_A", "--any-of": "CUSTOM_A,CUSTOM_B"}.items():
        redsched("select", "VCPU=1", option, value).check_failed(3)
    redsched("select", "VCPU=1", "--forbid", "CUSTOM_A", "--policy", "pack", "--dry-run").check()


def test_no_host_fits_is_exit_code_3_and_gives_the_reason(redsched: Redsched) -> None:
    redsched("select", "VCPU=9").check_failed(3, "VCPU")


def test_explain_gives_the_reason(redsched: Redsched) -> None:
    shown = redsched("explain", "VCPU=6", "--on", "h2").check().output
    assert "1 of 2 hosts fit" in shown
    assert re.search(r"HOST\tSCORE\tWEIGHERS\nh1\t(\d\.\d{3})\tspread=\+\1\n", shown)
    assert "needs 6 VCPU, free 4" in shown
    assert redsched("explain", "VCPU=6", "--json").check().json()["fits"] == 1
    redsched("explain", "VCPU=6", "--on", "h9").check_failed(4, "h9")


def test_drain_disable_enable_write_off(redsched: Redsched) -> None:
    for word, status in (("drain", "draining"), ("disable", "disabled"), ("enable", "enabled")):
        assert redsched("host", word, "h1").check().output == f"h1 is {status}\n"
        assert redsched("host", "show", "h1", "--json").check().json()["status"] == status
    redsched("host", "write-off", "h1").check_failed(
        3, "h1 is alive", "`redsched host drain h1 --move`", "`redsched host write-off h1 --force`"
    )
    redsched("host", "write-off", "h1", "--evacuate").check_failed(3, "`redsched host write-off h1 --evacuate --force`")
    assert redsched("host", "write-off", "h1", "--force", "--yes").check().output == "h1 is written off\n"
    for word in ("drain", "disable", "enable", "write-off"):
        redsched("host", word, "h9").check_failed(4, "h9")


def test_a_host_that_holds_claims_is_removed_by_force_alone(redsched: Redsched) -> None:
    redsched("select", "VCPU=1", "--host", "h1", "--id", "mine").check()
    redsched("host", "remove", "h1").check_failed(3, "release them first, or use `redsched host remove h1 --force`")
    assert redsched("host", "remove", "h1", "--force", "--yes").check().output == "h1 is removed\n"
    assert redsched("claim", "show", "mine", "--json").check().json()["state"] == "ended"
    redsched("host", "remove", "h1").check_failed(4, "h1")


def test_release_says_for_programs_what_is_free_and_what_is_ending(redsched: Redsched, store: str) -> None:
    """A claim that its host has accepted is ending; results before a refused claim are printed too."""
    for name in ("taken-up", "free"):
        redsched("select", "VCPU=1", "--host", "h1", "--id", name).check()
    asyncio.run(bring_up(store, "taken-up"))
    states = [{"claim_id": "taken-up", "state": "ending"}, {"claim_id": "free", "state": "freed"}]
    assert redsched("claim", "release", "taken-up", "free", "--json").check().json() == {"claims": states}
    found = redsched("claim", "release", "free", "nix", "--json")
    assert (found.exit_code, found.json()) == (4, {"claims": states[1:]})
    assert "nix" in found.errors


async def bring_up(url: str, claim_id: str) -> None:
    """Accept a claim, as the agent of its host does."""
    async with Store.connect(url, Settings()) as store:
        cell = store.cell("c1")
        claim = (await cell.claims.read([claim_id]))[claim_id]
        await cell.claims.accept(claim.host, claim_id, claim.token, 60)


def test_init_declares_a_new_cell_once(store: str) -> None:
    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    assert run("init", "--url", store).check().output == "cell c1 is declared\n"
    assert run("init", "--url", store).check().output == "cell c1 is not changed: it exists already\n"


def test_init_starts_an_epoch_above_one_that_hosts_have_seen(store: str) -> None:
    """Once: a cell whose epoch is above it is left alone. No epoch goes back, so a slip is refused."""
    run("init", "--url", store).check()
    above = "4000000000000-abc"
    started = run("init", "--above", above, "--cell", "c1", "--url", store).check().output
    assert re.fullmatch(rf"cell c1 has epoch 4000000000001-\w+, which is above {above}\n", started)
    assert run("init", "--above", above, "--url", store).check().output == started
    run("init", "--above", "9000000000000000-abc", "--url", store).check_failed(2, "more than 100 years ahead")
    run("init", "--above", "soon", "--url", store).check_failed(2, "malformed")


@pytest.mark.usefixtures("needs_store")
def test_audit_of_a_sound_store(redsched: Redsched) -> None:
    redsched("select", "VCPU=1").check()
    assert redsched("audit").check().output == "audited 2 hosts and 1 claim\nall is well\n"
    assert redsched("audit", "--json").check().json() == {"hosts": 2, "claims": 1, "problems": [], "broken_rules": []}


@pytest.mark.usefixtures("needs_store")
def test_a_broken_rule_is_listed_and_no_problem_of_the_store(redsched: Redsched) -> None:
    """By `audit`, `server-group show` and `status`, which names the members and what to do."""
    redsched("server-group", "set", "web", "--policy", "anti-affinity", "--max-per-host", "2").check()
    for claim in ("web-1", "web-2"):
        redsched("select", "VCPU=1", "--host", "h1", "--server-group", "web", "--id", claim).check()
    redsched("server-group", "set", "web", "--max-per-host", "1").check()
    how = "found 2 in h1, at most 1 allowed in each"
    expected = f"audited 2 hosts and 2 claims\nall is well\nrule broken: web, anti-affinity by host: {how}\n"
    assert redsched("audit").check().output == expected
    assert (
        f"its rule is broken, unless claims are moving: {how}\n"
        in redsched("server-group", "show", "web").check().output
    )
    status = redsched("status").output
    assert f"web, anti-affinity by host: {how} (web-1, web-2)" in " ".join(status.split())
    assert "redsched claim move web-1" in status


@pytest.mark.usefixtures("needs_store")
def test_audit_of_a_broken_store_is_exit_code_1_with_a_table(redsched: Redsched, store: str) -> None:
    """Invariant 2: the claimed amount of a host is not the sum of its claims."""
    redsched("select", "VCPU=1", "--host", "h1").check()
    with redis.Redis.from_url(store, protocol=2) as client:
        client.hset("rs:{c1}:host:h1", "claimed.VCPU", "3")
    found = redsched("audit")
    assert (found.exit_code, found.errors) == (1, "")
    lines = [line.split() for line in found.output.splitlines()]
    assert lines[1] == ["INVARIANT", "WHAT", "WHERE", "FOUND", "SHOULD", "BE", "REPAIRED"]
    assert lines[2] == ["2", "claimed", "h1", "VCPU", "3", "1", "no"]
    assert "--repair" in found.output
    assert redsched("audit", "--json").json()["problems"][0]["invariant"] == 2
    repaired = redsched("audit", "--repair", "--json").json()["problems"]
    assert [(one["thing"], one["found"], one["should"], one["repaired"]) for one in repaired] == [
        ("h1 VCPU", "3", "1", True)
    ]
    assert redsched("audit").check().output.endswith("all is well\n")


def test_a_reader_that_has_seen_enough_is_no_error(redsched: Redsched, store: str) -> None:
    """`redsched host list | head -1` ends without an error about a broken pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "host", "list", "--url", store], stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
