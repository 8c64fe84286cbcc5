"""Shell completion: commands, options, and names from the store; no names without a store."""

import shutil
import subprocess

import pytest
import redis

from tests.cli.conftest import Redsched
from tests.cli.parts import Ran, run
from tests.support.waiting import wait_until_sync

NOBODY = "redis://127.0.0.1:1"


def completed(store: str, line: str, shell: str = "bash") -> Ran:
    """Return what `redsched` prints for a shell in which this line was typed."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    environment = {"REDSCHED_REDIS_URL": store, "_REDSCHED_COMPLETE": f"complete_{shell}", **asked[shell]}
    return run(environment=environment)


def check_completed(store: str, line: str, names: list[str]) -> None:
    """Wait until these names are completed: a busy machine may not read them in time at first."""
    wait_until_sync(lambda: completed(store, line).output.split() == names, 30, f"{line!r} is completed by {names}")


def test_commands_and_options_are_completed_without_a_store() -> None:
    assert completed(NOBODY, "redsched ex").check().output.split() == ["explain", "export"]
    assert completed(NOBODY, "redsched host dr").check().output.split() == ["drain"]
    assert completed(NOBODY, "redsched hosts write").check().output.split() == ["write-off"]
    assert completed(NOBODY, "redsched host drain h1 --dead").check().output.split() == ["--deadline"]
    assert completed(NOBODY, "redsched host list --status dis").check().output.split() == ["disabled"]


def test_names_are_completed_from_the_store(redsched: Redsched, store: str) -> None:
    """Names of hosts, claims and declared objects complete arguments and the values of options."""
    for name in ("web-1", "web-2"):
        redsched("select", "VCPU=1", "--id", name).check()
    redsched("claim", "shelve", "web-2").check()
    redsched("aggregate", "set", "ssd").check()
    redsched("server-group", "set", "spread", "--policy", "anti-affinity").check()
    redsched("shared-pool", "set", "seats", "CUSTOM_SEAT=1").check()
    redsched("quota", "set", "shop", "VCPU=9").check()
    check_completed(store, "redsched host show ", ["h1", "h2"])
    check_completed(store, "redsched select VCPU=1 --exclude-host h", ["h1", "h2"])
    check_completed(store, "redsched claim show web", ["web-1", "web-2"])
    check_completed(store, "redsched claims release web-1 web-2", ["web-2"])
    check_completed(store, "redsched events --claim web-1", ["web-1"])
    check_completed(store, "redsched aggregates show ", ["ssd"])
    check_completed(store, "redsched server-group delete ", ["spread"])
    check_completed(store, "redsched shared-pool set s", ["seats"])
    check_completed(store, "redsched quota show ", ["shop"])


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_the_same(redsched: Redsched, store: str, shell: str) -> None:
    redsched("host", "list").check()
    wait_until_sync(lambda: "h1" in completed(store, "redsched host show h1", shell).output, 30)
    assert "h2" not in completed(store, "redsched host show h1", shell).output


@pytest.mark.parametrize("store", ["", NOBODY, "nonsense", "redis://10.255.255.1:1"])
def test_without_a_store_nothing_is_completed_and_nothing_said(store: str) -> None:
    ran = completed(store, "redsched host show ")
    assert (ran.exit_code, ran.output.strip(), ran.errors) == (0, "", "")


def test_names_are_read_without_declaring_a_cell(store: str) -> None:
    """Pressing Tab before `redsched init` must not create a cell that waits for hosts to attest."""
    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    completed(store, "redsched host show ")
    assert run("init", "--url", store).check().output == "cell c1 is declared\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    """docs/cli.md has `eval "$(_REDSCHED_COMPLETE=source_bash redsched)"`. A shell checks it where it is installed."""
    script = run(environment={"_REDSCHED_COMPLETE": f"source_{shell}"}).check().output
    assert f"_REDSCHED_COMPLETE=complete_{shell}" in script
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=script, text=True, check=True, timeout=60)
