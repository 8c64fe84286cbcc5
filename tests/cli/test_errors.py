"""Bad input: one line on stderr with a way to correct it, an exit code, and never a traceback."""

import subprocess
from pathlib import Path

import pytest

from redsched.cli import fleet
from redsched.store.embedded.server import PrivateServer
from tests.cli.conftest import Redsched
from tests.cli.parts import COMMAND, run
from tests.support.secret_watch import MARK

USAGE = {
    "unknown command": (("nix",), "nix"),
    "unknown option": (("host", "list", "--nix"), "--nix"),
    "missing argument": (
        (
            "host",
            "show",
        ),
        "HOST",
    ),
    "no amounts": (("select",), "CLASS=AMOUNT"),
    "status unknown": (("host", "list", "--status", "gone"), "--status"),
    "limit too large": (("host", "list", "--limit", "1001"), "--limit"),
    "port too large": (("api", "--port", "65536"), "--port"),
    "no workers": (("api", "--workers", "0"), "--workers"),
    "token malformed": (("claim", "release", "a", "--token", "x"), "token"),
    "amount without a number": (("select", "VCPU"), "VCPU"),
    "amount not whole": (("select", "VCPU=2.0"), "2.0"),
    "amount twice": (("select", "VCPU=1", "VCPU=2"), "twice"),
    "amount negative": (("select", "VCPU=-1"), "-1"),
    "amount above 2^53-1": (("select", "VCPU=9007199254740992"), "9007199254740992"),
    "unknown class": (("select", "VCPUS=1"), "VCPUS"),
    "unknown trait": (("select", "VCPU=1", "--require", "FAST"), "FAST"),
    "label without a value": (("explain", "VCPU=1", "--label", "rack"), "rack"),
    "weight not a number": (("explain", "VCPU=1", "--weight", "free=x"), "free"),
    "too few ids": (("select", "VCPU=1", "-n", "2", "--id", "a"), "claim_ids"),
    "claim not a name": (("claim", "show", "a b"), "a b"),
    "claim to release not a name": (("claim", "release", "a", "b/c"), "b/c"),
    "zone to list not a name": (("host", "list", "--zone", "x y"), "x y"),
    "host of claims not a name": (("claim", "list", "--host", "x/y"), "x/y"),
    "project of claims not a name": (("claim", "list", "--project", "x y"), "x y"),
    "consumer of claims not a name": (("claim", "list", "--consumer", "x y"), "x y"),
    "zone of claims not a name": (("claim", "list", "--zone", "x:y"), "x:y"),
    "host to explain not a name": (("explain", "VCPU=1", "--on", "x y"), "x y"),
    "host to forget not a name": (("host", "remove", "x y"), "x y"),
    "host not a name": (("host", "drain", "a b"), "a b"),
}


@pytest.mark.parametrize(("arguments", "word"), USAGE.values(), ids=USAGE)
def test_malformed_is_exit_code_2(store: str, arguments: tuple[str, ...], word: str) -> None:
    run(*arguments, environment={"REDSCHED_REDIS_URL": store}).check_failed(2, word)


@pytest.mark.parametrize("command", ["host list", "api", "agent", "audit", "init"])
def test_without_a_store_it_says_how_to_give_one(command: str) -> None:
    run(*command.split()).check_failed(2, "REDSCHED_REDIS_URL", "--url")


@pytest.mark.parametrize("command", ["host list", "api --port 0", "agent", "audit", "init", "up --port 0"])
def test_an_unreachable_store_is_exit_code_5(command: str) -> None:
    environment = {"REDSCHED_REDIS_URL": "redis://127.0.0.1:1", "REDSCHED_REPLY_TIMEOUT_S": "0.5"}
    run(*command.split(), environment=environment).check_failed(5, "127.0.0.1:1")


@pytest.mark.parametrize("command", ["host list", "select VCPU=1", "init", "up --port 0", "agent"])
def test_a_url_left_over_from_an_earlier_up_is_explained(command: str, tmp_path: Path) -> None:
    environment = {"REDSCHED_REDIS_URL": f"unix://{tmp_path}/store.sock", "REDSCHED_REPLY_TIMEOUT_S": "0.5"}
    words = ("no server is there", "left over from an earlier `redsched up`", "unset it, or start `redsched up` again")
    run(*command.split(), environment=environment).check_failed(5, "store.sock", *words)


@pytest.mark.parametrize("command", ["host list", "select VCPU=1", "init", "events", "functions show", "up --port 0"])
def test_a_store_that_stands_still_is_reported_soon(
    monkeypatch: pytest.MonkeyPatch, fresh_server: PrivateServer, command: str
) -> None:
    """Not only after all retries of a reply, as long as the settings do not say how long a reply may take."""
    monkeypatch.setattr(fleet, "FIRST_REPLY_S", 0.3)  # of this process, which is that of all commands but `up`
    environment = {"REDSCHED_REDIS_URL": fresh_server.url}
    fresh_server.pause()
    try:
        ran = run(*command.split(), environment=environment)
    finally:
        fresh_server.resume()
    waited_s = 2 if command.startswith("up") else 0.3
    ran.check_failed(5, f"did not reply within {waited_s} s", "REDSCHED_REPLY_TIMEOUT_S")


@pytest.mark.parametrize("command", ["select", "explain"])
def test_an_unknown_zone_lists_the_zones(redsched: Redsched, command: str) -> None:
    unknown = "unknown zone 'az9': the hosts are in az1, az2"
    ran = redsched(command, "VCPU=1", "--zone", "az9")
    if command == "select":
        ran.check_failed(3, "2 in other zones", unknown)
    else:
        assert ran.check(1).output.splitlines()[1] == unknown
        found = redsched(command, "VCPU=1", "--zone", "az9", "--json").check(1).json()
        assert (found["unknown_zones"], found["zones"]) == (["az9"], ["az1", "az2"])


def test_an_unknown_host_is_named(redsched: Redsched) -> None:
    redsched("select", "VCPU=1", "--host", "nope").check_failed(3, "2 not among those named; unknown host 'nope'")
    assert redsched("explain", "VCPU=1", "--host", "nope").check(1).output.splitlines()[1] == "unknown host 'nope'"
    found = redsched("explain", "VCPU=1", "--host", "nope", "--json").check(1).json()
    assert (found["unknown_hosts"], found["unknown_zones"]) == (["nope"], [])


def test_explain_names_a_closed_host_that_would_fit(redsched: Redsched) -> None:
    redsched("host", "disable", "h1").check()
    lines = redsched("explain", "VCPU=1", "--host", "h1").check(1).output.splitlines()
    assert lines[:3] == ["0 of 2 hosts fit", "REASON\tHOSTS", "hosts\t1"]
    assert "would fit if they took claims: h1 (disabled)" in lines


def test_a_hook_that_does_not_exist_is_refused(store: str, tmp_path: Path) -> None:
    environment = {"REDSCHED_HOOK": f"{tmp_path}/absent", "REDSCHED_JOURNAL": f"{tmp_path}/journal"}
    run("agent", "--fleet", "1", "--url", store, environment=environment).check_failed(2, "absent", "does not exist")


def test_a_url_of_another_kind_is_refused() -> None:
    run("host", "list", "--url", "http://127.0.0.1").check_failed(2, "redis://")


@pytest.mark.parametrize("command", ["host list", "api --port 0", "agent", "init"])
def test_a_url_that_cannot_be_read_is_refused(command: str) -> None:
    run(*command.split(), "--url", "redis://h:abc/0").check_failed(2, "redis://h:abc/0", "port")


def test_up_refuses_a_url_that_cannot_be_read() -> None:
    environment = {"REDSCHED_REDIS_URL": "redis://h:abc/0"}
    run("up", "--port", "0", environment=environment).check_failed(2, "redis://h:abc/0", "port")


def test_a_password_is_not_shown() -> None:
    """A password on the command line is used, with a warning that names the other ways."""
    warning, error = run("host", "list", "--url", f"redis://:{MARK}a@127.0.0.1:1").errors.splitlines()
    assert all(one in warning for one in ("--url has a password", "REDSCHED_REDIS_URL", "REDSCHED_REDIS_PASSWORD_FILE"))
    assert MARK not in warning + error
    quiet = {"REDSCHED_REDIS_URL": f"redis://:{MARK}a@127.0.0.1:1"}
    assert MARK not in run("host", "list", environment=quiet).check_failed(5)


@pytest.mark.parametrize(
    ("name", "value", "command"),
    [
        ("REDSCHED_POOL_SIZE", "many", "host list"),
        ("REDSCHED_TICK_S", "-1", "host list"),
        ("REDSCHED_POLICY", "fair", "select VCPU=1"),
    ],
)
def test_a_bad_setting_is_named(name: str, value: str, command: str) -> None:
    """By every command that uses it: what places nothing needs no policy."""
    run(*command.split(), "--url", "redis://127.0.0.1:1", environment={name: value}).check_failed(2, name, value)


def test_a_setting_that_is_not_json_is_named() -> None:
    run("host", "list", environment={"REDSCHED_WEIGHTS": "{"}).check_failed(2, "REDSCHED_WEIGHTS")


def test_unknown_objects_are_exit_code_4(redsched: Redsched) -> None:
    for arguments in (("claim", "show", "nix"), ("claim", "release", "nix"), ("host", "show", "nix")):
        redsched(*arguments).check_failed(4, "nix")


def test_help_and_version_go_to_stdout() -> None:
    assert "audit" in run("--help").check().output
    assert run("--version").check().output.startswith("redsched ")
    nothing = run()
    assert (nothing.exit_code, nothing.errors) == (2, "")
    assert "audit" in nothing.output


def test_a_full_disk_is_one_line() -> None:
    """Such as that of `redsched claim list > FILE`."""
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([*COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "redsched: the output cannot be written: No space left on device\n")
