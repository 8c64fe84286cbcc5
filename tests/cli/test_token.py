"""`redsched token`: the token is printed once, the file gets its digest, and no store is used."""

import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from redsched.auth.access_token import digest_of, id_of
from redsched.auth.token_file import read_token_file
from redsched.model.role import Role
from tests.cli.parts import Ran, run

pytestmark = pytest.mark.shows_secret  # printing a token is what `token new` is for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.yaml"


def token(path: Path, *arguments: str) -> Ran:
    return run("token", *arguments, environment={"REDSCHED_AUTH": os.fspath(path)})


def created(path: Path, *arguments: str) -> str:
    """Create a token and return it: it is all that is on stdout."""
    ran = token(path, "new", *arguments)
    assert ran.exit_code == 0, ran
    [line] = ran.output.splitlines()
    assert line not in ran.errors
    return line


def test_new_prints_a_token_and_writes_its_digest(path: Path) -> None:
    text = created(path, "ci", "--role", "tenant", "--project", "web", "--project", "")
    assert re.fullmatch(r"rst_ci_[A-Za-z0-9_-]{43}", text)
    found = read_token_file(path).tokens["ci"]
    assert found.digest == digest_of(text)
    assert (found.caller.role, found.caller.projects) == (Role.TENANT, frozenset({"web", ""}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert text[-43:] not in path.read_text()


def test_new_explains_on_stderr(path: Path) -> None:
    said = token(path, "new", "ci", "--role", "operator").errors.splitlines()
    assert "ci is an operator" in said[0]
    assert os.fspath(path) in said[0]
    assert "shown this once" in said[1]


def test_help_warns_of_tokens_on_command_lines() -> None:
    assert "other users of the machine can see it" in " ".join(run("token", "new", "--help").output.split())


def test_every_option_reaches_the_file(path: Path) -> None:
    agents = "--role agent --host h1 --host h2 --cell c1 --zone az1 --label rack"
    others = "--role agent --host h3 --trait CUSTOM_A --project web --expires 2090-01-31T00:00:00Z"
    tenants = "--role tenant --project web --claim-prefix web- --sees-hosts --owner oidc:ann --project-wide"
    for name, options in (("h1", agents), ("h3", others), ("t", tenants)):
        created(path, name, *options.split())
    tokens = {name: entry.caller for name, entry in read_token_file(path).tokens.items()}
    agent, other, tenant = tokens["h1"], tokens["h3"], tokens["t"]
    assert (agent.hosts, agent.cell, agent.zones, agent.labels) == (
        frozenset({"h1", "h2"}),
        "c1",
        frozenset({"az1"}),
        frozenset({"rack"}),
    )
    assert (other.traits, other.projects) == (frozenset({"CUSTOM_A"}), frozenset({"web"}))
    assert other.expires_at_s == datetime(2090, 1, 31, tzinfo=UTC).timestamp()
    assert (tenant.claim_prefix, tenant.sees_hosts) == ("web-", True)
    assert (tenant.owner, tenant.own_only) == ("oidc:ann", False)


def test_a_new_tenant_may_change_its_own_claims_only(path: Path) -> None:
    """One from before claims had owners has no `project_wide`, and goes on to change all of its projects."""
    for name in ("new", "old"):
        created(path, name, "--role", "tenant", "--project", "web")
    before, old, after = path.read_text().partition("id: old\n")
    path.write_text(before + old + after.replace("  project_wide: false\n", ""))
    callers = {name: entry.caller for name, entry in read_token_file(path).tokens.items()}
    assert {name: (one.owner, one.own_only) for name, one in callers.items()} == {
        "new": ("new", True),
        "old": ("old", False),
    }
    shown = token(path, "list", "-o", "wide").check().output.splitlines()
    assert [" ".join(line.split()[-3:]) for line in shown[1:]] == ["new its own", "of its projects"]
    listed = token(path, "list", "--json").check().json()["tokens"]
    assert [(one["owner"], one["project_wide"]) for one in listed] == [("new", False), ("old", True)]


def test_a_token_may_expire_after_a_time(path: Path) -> None:
    before = datetime.now(UTC).timestamp()
    created(path, "ci", "--role", "reader", "--expires", "90d")
    expires_at_s = read_token_file(path).tokens["ci"].caller.expires_at_s
    assert expires_at_s is not None
    assert before - 1 <= expires_at_s - 90 * 86_400 <= datetime.now(UTC).timestamp()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a b", "--role", "reader"), "not a name"),
        (("rst_x", "--role", "reader"), "give the id alone"),
        (("ci", "--role", "boss"), "--role"),
        (("ci",), "--role"),
        (("ci", "--role", "tenant"), "at least one, as in `redsched token new ci --role tenant --project web`"),
        (("ci", "--role", "agent"), "--host is missing: the role agent needs at least one, as in `redsched token new "),
        (("ci", "--role", "reader", "--host", "h1"), "--host is not for the role reader: leave it out"),
        (("ci", "--role", "operator", "--project-wide"), "--project-wide is not for the role operator"),
        (("ci", "--role", "reader", "--owner", "ann"), "owner is not for the role reader"),
        (("ci", "--role", "tenant", "--project", "web", "--owner", "@me"), "no owner of claims"),
        (("ci", "--role", "reader", "--expires", "soon"), "--expires"),
        (("ci", "--role", "reader", "--expires", "2020-01-01"), "not within the next 100 years"),
        (("ci", "--role", "reader", "--expires", "99999999d"), "not within the next 100 years"),
        (("ci", "--role", "reader", "--expires", "20-20"), "expires must be a time"),
    ],
)
def test_what_makes_no_valid_entry_is_refused_and_writes_nothing(
    path: Path, arguments: tuple[str, ...], words: str
) -> None:
    token(path, "new", *arguments).check_failed(2, words)
    assert not path.exists()


def test_an_id_is_given_once(path: Path) -> None:
    created(path, "ci", "--role", "reader")
    before = path.read_text()
    token(path, "new", "ci", "--role", "operator").check_failed(2, os.fspath(path), "'ci' exists: revoke it first")
    assert path.read_text() == before


def test_the_file_may_be_an_option_and_must_be_named(path: Path) -> None:
    assert run("token", "new", "ci", "--role", "reader", "--file", os.fspath(path)).exit_code == 0
    for arguments in (("new", "ci", "--role", "reader"), ("list",), ("revoke", "ci")):
        run("token", *arguments).check_failed(2, "set REDSCHED_AUTH, or pass --file")


def test_list_shows_tokens_without_digests(path: Path) -> None:
    text = created(path, "ci", "--role", "tenant", "--project", "web", "--project", "")
    created(path, "h1", "--role", "agent", "--host", "h1")
    path.write_text(path.read_text() + "  expires: 2020-01-01\n")
    shown = token(path, "list").check().output
    assert [line.split() for line in shown.splitlines()] == [
        ["TOKEN", "ROLE", "FOR", "EXPIRES", "EXPIRED"],
        ["ci", "tenant", "''", "web", "-", "no"],
        ["h1", "agent", "h1", "2020-01-01T00:00:00Z", "yes"],
    ]
    as_json = run("tokens", "--json", environment={"REDSCHED_AUTH": os.fspath(path)}).check()
    ci, h1 = as_json.json()["tokens"]
    assert (ci["id"], ci["projects"], ci["expires"], ci["expired"]) == ("ci", ["", "web"], None, False)
    assert (h1["hosts"], h1["expires"], h1["expired"]) == (["h1"], "2020-01-01T00:00:00Z", True)
    assert not any(secret in shown + as_json.output for secret in (text[-43:], digest_of(text).hex()))


def test_list_of_none_and_of_a_bad_file(path: Path) -> None:
    token(path, "list").check_failed(2, "cannot be read")
    path.write_text("tokens: []\n")
    path.chmod(0o600)
    assert token(path, "list").check().output == "no tokens\n"
    path.chmod(0o644)
    token(path, "list").check_failed(2, "chmod 600")


def test_revoke_removes_one_and_keeps_comments(path: Path) -> None:
    created(path, "ci", "--role", "reader")
    created(path, "ops", "--role", "operator")
    path.write_text(f"# Ours.\n{path.read_text()}")
    assert token(path, "revoke", "ci").check().output == "ci is revoked\n"
    assert path.read_text().startswith("# Ours.\n")
    assert list(read_token_file(path).tokens) == ["ops"]
    token(path, "revoke", "ci").check_failed(4, "no token 'ci'", "`redsched token list`")
    assert token(path, "revoke", "ops").check().output == "ops is revoked\n"
    assert read_token_file(path).tokens == {}


def test_revoke_creates_no_file(path: Path) -> None:
    token(path, "revoke", "ci").check_failed(2, "cannot be read")
    assert not path.exists()


def test_lost_comments_are_reported(path: Path) -> None:
    text = created(path, "ci", "--role", "reader")
    path.write_text(f"# Lost.\n{{tokens: [{{id: ci, sha256: '{digest_of(text).hex()}', role: reader}}]}}\n")
    said = token(path, "new", "ops", "--role", "operator")
    assert "comments of" in said.errors
    assert id_of(said.output.strip()) == "ops"
    assert list(read_token_file(path).tokens) == ["ci", "ops"]
