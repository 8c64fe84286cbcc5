"""Which fleet a command works on: options, the environment, and contexts; the API's errors, and what it loads."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from redsched import logs
from redsched.cli.fleet import settings_for
from redsched.settings import Settings
from tests.auth.parts import authenticator, document, entry, token, write
from tests.cli.conftest import Redsched, served
from tests.cli.parts import run, running
from tests.support.waiting import wait_until_sync

BOTH = ["info", "warning"]
NO_STORE = {"redis", "hiredis", "numpy", "redsched.store.store", "redsched.scheduler.scheduler"}
LOADED = """
import sys
from redsched.cli.main import run
code = run(sys.argv[2:])
print(*(name for name in sys.argv[1].split() if name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def api(redsched: Redsched, store: str) -> Iterator[str]:
    """Yield the URL of an API on the store with hosts h1 and h2."""
    redsched("select", "VCPU=1", "--id", "placed", "--host", "h1").check()
    with served(Settings(redis_url=store)) as url:
        yield url


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of an empty file of contexts, which commands use."""
    path = tmp_path / "folder" / "config.yaml"
    monkeypatch.setenv("REDSCHED_CONFIG", os.fspath(path))
    for name in ("REDSCHED_REDIS_URL", "REDSCHED_API", "REDSCHED_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    return path


def hosts(*words: str, environment: dict[str, str] | None = None) -> list[str]:
    """Return the names of the hosts that a list with these options has."""
    return run("host", "list", "-o", "name", *words, environment=environment).check().output.split()


def test_without_a_fleet_the_error_names_every_way(config: Path) -> None:
    assert not config.exists()
    run("status").check_failed(2, "REDSCHED_REDIS_URL", "REDSCHED_API", "--url", "--api", "redsched context set")


def test_options_come_before_the_environment_and_that_before_the_context(api: str, store: str, config: Path) -> None:
    """What comes later is not even tried: nobody listens there."""
    nowhere = "http://127.0.0.1:1"
    run("context", "set", "here", "--url", store).check()
    assert hosts() == ["h1", "h2"]
    run("status", environment={"REDSCHED_API": nowhere}).check_failed(5, nowhere)
    assert hosts("--api", api, environment={"REDSCHED_REDIS_URL": "redis://127.0.0.1:1"}) == ["h1", "h2"]
    assert hosts("--url", store, environment={"REDSCHED_API": nowhere}) == ["h1", "h2"]
    assert hosts("--context", "here", environment={"REDSCHED_API": nowhere}) == ["h1", "h2"]
    run("context", "set", "there", "--api", nowhere).check()
    run("status", environment={"REDSCHED_CONTEXT": "there"}).check_failed(5, nowhere)


def test_two_fleets_of_the_same_kind_are_refused(config: Path) -> None:
    run("status", "--url", "redis://a", "--api", "http://localhost").check_failed(2, "--url and --api", "give one")
    run("status", "--api", "http://localhost", "--context", "x").check_failed(2, "--api and --context")
    both = {"REDSCHED_REDIS_URL": "redis://a", "REDSCHED_API": "http://localhost"}
    run("status", environment=both).check_failed(2, "both set", "unset one")
    run("status", "--url", "redis://a", "--token-file", "x").check_failed(2, "--token-file is for an API")


def test_contexts_are_set_used_listed_shown_and_deleted(config: Path) -> None:
    assert run("context", "list").check().output.startswith("no contexts: `redsched context set NAME")
    mine = write(config.parent.parent / "t", "rst_ann_secret")
    assert run("context", "set", "lab", "--api", "https://lab:8080", "--token-file", str(mine)).check().output == (
        "context lab is set\n"
    )
    here = "redis://:secret@store:6379"
    assert "redsched context use here" in run("context", "set", "here", "--url", here).check().output
    rows = [line.split("\t") for line in run("contexts").check().output.splitlines()]
    assert rows[0] == ["CONTEXT", "USED", "FLEET", "TOKEN FILE"]
    assert rows[1] == ["here", "no", "redis://:***@store:6379", "-"]
    assert rows[2] == ["lab", "yes", "https://lab:8080", str(mine)]
    assert run("context", "use", "here").check().output == "commands use context here now\n"
    shown = run("context", "list", "--json").check()
    assert shown.json()["current"] == "here"
    assert "secret" not in shown.output + run("context", "show", "here").check().output
    assert config.stat().st_mode & 0o777 == 0o600
    assert run("context", "delete", "here").check().output == "context here is deleted\n"
    assert run("context", "list", "--json").check().json() == {
        "current": "",
        "contexts": [{"name": "lab", "api": "https://lab:8080", "token_file": str(mine)}],
    }


def test_mistakes_about_contexts_say_what_to_do(config: Path) -> None:
    run("context", "use", "x").check_failed(4, "no context 'x'", "none yet", "redsched context set")
    run("context", "set", "lab", "--api", "https://lab").check()
    run("status", "--context", "x").check_failed(4, "no context 'x'", "it has lab")
    run("context", "set", "x").check_failed(2, "either --api or --url")
    run("context", "set", "x", "--url", "redis://a", "--token-file", "t").check_failed(2, "leave them out")
    config.write_text("contexts: {lab: {urll: x}}")
    run("status").check_failed(2, str(config), "contexts.lab.urll", "use api, token_file")
    config.write_text("[1]")
    run("status").check_failed(2, str(config), "not a mapping", "redsched context set")
    config.write_text("contexts: {lab: {api: x, redis_url: y}}")
    run("status").check_failed(2, str(config), "contexts.lab", "either")
    config.write_text("a: [")
    run("context", "list").check_failed(2, str(config), "YAML")
    config.unlink()
    config.mkdir()
    run("context", "list").check_failed(2, str(config), "cannot be read")


def test_a_context_that_no_command_could_use_is_refused_at_once(config: Path, tmp_path: Path) -> None:
    """Not only by the first command that uses it. Nothing is written."""
    readable = write(tmp_path / "readable", "rst_ann_secret")
    readable.chmod(0o644)
    for words, expected in {
        ("--api", "lab:8080"): ("'lab:8080' is not one", "https://HOST:PORT"),
        ("--api", "redis://lab"): ("'redis://lab' is not one",),
        ("--api", "http://elsewhere.example"): ("plain http", "--insecure"),
        ("--api", "https://lab", "--token-file", str(tmp_path / "gone")): ("gone cannot be read", "No such file"),
        ("--api", "https://lab", "--token-file", str(tmp_path)): ("is not a regular file",),
        ("--api", "https://lab", "--token-file", str(readable)): ("has mode 0644", "chmod 600"),
        ("--api", "https://lab", "--api-ca", str(tmp_path / "gone")): ("authorities", "gone cannot be used"),
        ("--api", "https://lab", "--api-cert", str(readable)): ("both the certificate and its key",),
        ("--url", "https://lab"): ("it begins with none of redis://",),
        ("--url", "lab:6379"): ("it begins with none of redis://",),
    }.items():
        run("context", "set", "lab", *words).check_failed(2, *expected)
    assert not config.exists()
    run("context", "set", "lab", "--api", "http://elsewhere.example", "--insecure").check()


def test_a_missing_token_is_said_in_words_of_the_command_line(config: Path, store: str, tmp_path: Path) -> None:
    """With the options, the variables or the context that would name one; and a refused one with its file."""
    file = write(tmp_path / "tokens.yaml", document(entry(token("ann"), role="tenant", projects=["web"])))
    other = write(tmp_path / "other", token("bob"))
    with served(Settings(redis_url=store), authenticator(file)) as url:
        named = (
            "--token-file FILE",
            "REDSCHED_TOKEN_FILE",
            f"`redsched context set NAME --api {url} --token-file FILE`",
        )
        missing = run("claim", "list", "--api", url)
        missing.check_failed(6, f"the API at {url} wants a token", *named)
        assert "Authorization" not in missing.errors
        run("context", "set", "lab", "--api", url).check()
        again = f"`redsched context set lab --api {url} --token-file FILE`"
        run("claim", "list").check_failed(6, "context lab names no file with one", again)
        run("claim", "list", "--token-file", str(other)).check_failed(
            6, f"the token in {other} is refused", "not valid"
        )


@pytest.mark.parametrize("words", [("host", "list"), ("status",), ("host", "show", "h1"), ("host", "drain", "h1")])
def test_a_tenant_learns_what_its_token_may_do(
    redsched: Redsched, store: str, config: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Not the names of routes. What shows it what is free works."""
    file = write(tmp_path / "tokens.yaml", document(entry(token("ann"), role="tenant", projects=["web"])))
    mine = write(tmp_path / "mine", token("ann"))
    with served(Settings(redis_url=store), authenticator(file)) as url:
        asked = ("--api", url, "--token-file", str(mine))
        refused = run(*words, *asked)
        refused.check_failed(6, "the token of 'ann' has the role tenant", "`redsched capacity`", "operator")
        assert "route" not in refused.errors
        assert "VCPU" in run("capacity", *asked).check().output


def test_a_refusal_names_the_token_and_the_project_that_it_lacks(
    redsched: Redsched, store: str, config: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "tokens.yaml", document(entry(token("ann"), role="tenant", projects=["web"])))
    mine = write(tmp_path / "mine", token("ann"))
    with served(Settings(redis_url=store), authenticator(file)) as url:
        asked = ("--api", url, "--token-file", str(mine))
        run("select", "VCPU=1", "--project", "db", *asked).check_failed(6, "token of 'ann' is for project web", "'db'")
        run("claim", "release", "--project", "web", "--force", "--yes", *asked).check_failed(6, "'ann'", "role tenant")
        run("explain", "VCPU=1", "--host", "h1", *asked).check_failed(6, "token of 'ann' may not name hosts")


def test_a_file_of_contexts_that_is_a_link_stays_one(config: Path, tmp_path: Path) -> None:
    """People keep their configuration in a folder of its own, and link to it."""
    target = tmp_path / "dotfiles.yaml"
    target.write_text("contexts: {}\n")
    config.parent.mkdir()
    config.symlink_to(target)
    run("context", "set", "here", "--url", "redis://127.0.0.1:1").check()
    assert config.is_symlink()
    assert "127.0.0.1:1" in target.read_text()


def test_a_file_of_contexts_that_cannot_be_looked_up_is_an_error(monkeypatch: pytest.MonkeyPatch, config: Path) -> None:
    config.parent.mkdir()
    monkeypatch.setenv("REDSCHED_CONFIG", f"{config}{'a' * 300}")
    run("context", "list").check_failed(2, "cannot be read", "File name too long")


def test_a_context_of_a_store_serves_commands_that_need_it(store: str, redsched: Redsched, config: Path) -> None:
    run("context", "set", "here", "--url", store).check()
    assert "all is well" in run("audit").check().output


@pytest.mark.parametrize("words", [("audit",), ("export",), ("init",), ("upgrade",), ("function", "show")])
def test_a_command_that_needs_the_store_is_refused_over_an_api(words: tuple[str, ...], config: Path) -> None:
    environment = {"REDSCHED_API": "http://localhost"}
    run(*words, environment=environment).check_failed(2, "needs access to the store", "http://localhost", "--url")


def test_an_api_that_cannot_be_reached_is_exit_code_5(config: Path) -> None:
    run("status", "--api", "http://127.0.0.1:1").check_failed(5, "the API at http://127.0.0.1:1 cannot be reached")
    run("status", "--api", "127.0.0.1:8080").check_failed(2, "'127.0.0.1:8080' is not one", "https://HOST:PORT")
    run("status", "--api", "http://elsewhere.example").check_failed(2, "plain http", "REDSCHED_API_INSECURE=true")


def test_a_token_decides_what_a_command_may_do(redsched: Redsched, store: str, config: Path, tmp_path: Path) -> None:
    """A tenant sees its own claims, and changes no hosts; without a token nothing is shown."""
    redsched("select", "VCPU=1", "--id", "theirs", "--project", "shop").check()
    redsched("select", "VCPU=1", "--id", "ours-1", "--project", "web").check()
    tenant = entry(token("ann"), role="tenant", projects=["web"], claim_prefix="ours-")
    file = write(tmp_path / "tokens.yaml", document(tenant))
    mine = tmp_path / "mine"
    mine.write_text(token("ann"))
    mine.chmod(0o600)
    with served(Settings(redis_url=store), authenticator(file)) as url:
        asked = ("--api", url, "--token-file", str(mine))
        assert run("claim", "list", "-o", "name", *asked).check().output == "ours-1\n"
        for one in ("theirs", "unknown"):
            known = "the token of 'ann' sees: only those of project web"
            run("claim", "show", one, *asked).check_failed(4, f"no claim '{one}'", known)
        run("host", "drain", "h1", *asked).check_failed(6, "tenant")
        run("claim", "list", "--api", url).check_failed(6, "token")
        made = run("select", "VCPU=1", "--id", "ours-2", *asked).check().output
        assert "ours-2" in made


@pytest.mark.usefixtures("redsched", "config")
def test_a_command_changes_the_claims_of_its_caller(store: str, tmp_path: Path) -> None:
    """And says which these are before it asks. Those of others are listed, and refused with what to ask for."""
    own = {"role": "tenant", "projects": ["web"], "project_wide": False}
    file = write(tmp_path / "tokens.yaml", document(entry(token("ann"), **own), entry(token("bob"), **own)))
    with served(Settings(redis_url=store), authenticator(file)) as url:
        asked = {}
        for name in ("ann", "bob"):
            write(tmp_path / name, token(name))
            asked[name] = ("--api", url, "--token-file", str(tmp_path / name))
            run("select", "VCPU=1", "--id", f"of-{name}", *asked[name]).check()
        assert sorted(run("claim", "list", "-o", "name", *asked["ann"]).check().output.split()) == ["of-ann", "of-bob"]
        assert run("claim", "list", "--mine", "-o", "name", *asked["ann"]).check().output == "of-ann\n"
        run("claim", "release", "of-bob", *asked["ann"]).check_failed(6, "belongs to 'bob'", "project-wide")
        run("claim", "release", "--owner", "bob", "--yes", *asked["ann"]).check_failed(6, "'bob'")
        run("select", "VCPU=1", "--owner", "bob", *asked["ann"]).check_failed(6, "'bob'")
        said = "1 claim will be released: of-ann (1 of web)"
        run("claim", "release", "--project", "web", *asked["ann"]).check_failed(2, said)
        left = "1 claim of other owners cannot be released with this token"
        freed = run("claim", "release", "--project", "web", "--yes", *asked["ann"]).check().output
        assert "1 released" in freed
        assert left in freed
        assert run("claim", "list", "-o", "name", *asked["ann"]).check().output == "of-bob\n"
        for words in (("--yes",), ("--dry-run",)):
            none = run("claim", "release", "--project", "web", *words, *asked["ann"]).check().output
            assert none.startswith("no claims that this token may change\n")
            assert left in none
            assert "--project-wide" in none
        assert run("claim", "release", "--mine", "--yes", *asked["ann"]).check().output == "no claims\n"


def test_nothing_of_the_store_is_loaded_over_an_api(api: str, config: Path) -> None:
    """So that the command line works where only the client is installed."""
    for words in (("host", "list"), ("claim", "show", "placed"), ("status",), ("explain", "VCPU=1")):
        ended = subprocess.run(
            [sys.executable, "-c", LOADED, " ".join(NO_STORE), *words],
            env={**os.environ, "REDSCHED_API": api},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stderr.split() == [], words


def test_names_are_completed_over_an_api(api: str, config: Path) -> None:
    typed = {"COMP_WORDS": "redsched\nclaim\nshow\npl", "COMP_CWORD": "3"}
    environment = {"_REDSCHED_COMPLETE": "complete_bash", "REDSCHED_API": api, **typed}
    wait_until_sync(lambda: run(environment=environment).output.split() == ["placed"], 30)


def test_events_are_listed_and_followed_over_an_api(redsched: Redsched, api: str, config: Path) -> None:
    """The API's scheduler records them; those of another kind are left out."""
    asked = ("events", "--api", api, "--kind", "claimed")

    def newest() -> list[str]:
        return [one["claim"] for one in run(*asked, "--json").check().json()["events"]]

    wait_until_sync(lambda: newest() == ["placed"])
    with running(*asked, "--follow", "-o", "json") as following:
        numbers = count()

        def seen() -> bool:
            """Place claims until one is followed: events before the command has begun to follow are not."""
            name = f"later-{next(numbers)}"
            redsched("select", "VCPU=1", "--host", "h1", "--id", name)
            redsched("claim", "release", name)
            return bool(following.lines)

        wait_until_sync(seen)
        kinds = {json.loads(line)["kind"] for line in following.lines}
    assert kinds == {"claimed"}


@pytest.mark.parametrize(
    ("level", "serves", "shown"),
    [("", False, ["warning"]), ("", True, BOTH), ("info", False, BOTH), ("error", True, [])],
)
def test_commands_log_warnings_and_services_what_they_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str, serves: bool, shown: list[str]
) -> None:
    """A command's output must not depend on whether it met a new epoch. A level that was set applies to all."""
    if level:
        monkeypatch.setenv("REDSCHED_LOG_LEVEL", level)
    settings_for("unix:///store.sock", serves)
    log = logs.get_logger("redsched")
    log.info("event")
    log.warning("event")
    assert [line.split("[")[1].split("]")[0].strip() for line in capsys.readouterr().err.splitlines()] == shown
