"""The token file: what it may have, and what is refused with which reason."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from redsched.auth.access_token import digest_of
from redsched.auth.caller import Caller, Limits
from redsched.auth.token_file import parse_token_file, read_token_file
from redsched.errors import InvalidRequest
from redsched.model.role import Role
from tests.auth.parts import document, entry, token, write

TOKEN = token("ci")
TENANT = {"role": "tenant", "projects": ["web"]}
AGENT = {"role": "agent", "hosts": ["h1"]}


def caller(**fields: Any) -> Caller:
    """Return the caller of one entry with these fields."""
    return parse_token_file(document(entry(TOKEN, **fields))).tokens["ci"].caller


def refused(text: str) -> str:
    """Return the reason why a text is refused."""
    with pytest.raises(InvalidRequest) as caught:
        parse_token_file(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_field_of_a_tenant() -> None:
    limits = {"requests": 5, "waiting": 0, "streams": 1}
    mine = {"owner": "oidc:ann", "project_wide": False}
    found = caller(
        **TENANT, **mine, claim_prefix="web-", sees_hosts=True, limits=limits, expires="2027-01-31T00:00:00Z"
    )
    expires_at_s = datetime(2027, 1, 31, tzinfo=UTC).timestamp()
    assert found == Caller(
        id="ci",
        role=Role.TENANT,
        projects=frozenset({"web"}),
        claims_for="oidc:ann",
        project_wide=False,
        claim_prefix="web-",
        sees_hosts=True,
        expires_at_s=expires_at_s,
        limits=Limits(5, 0, 1),
    )


def test_every_field_of_an_agent() -> None:
    found = caller(
        role="agent",
        hosts=["h1", "h2"],
        cell="c1",
        zones=["az1"],
        labels=["rack"],
        traits=["CUSTOM_A", "HW_CPU_X86_AVX2"],
        projects=["web"],
    )
    assert found == Caller(
        id="ci",
        role=Role.AGENT,
        hosts=frozenset({"h1", "h2"}),
        cell="c1",
        zones=frozenset({"az1"}),
        labels=frozenset({"rack"}),
        traits=frozenset({"CUSTOM_A", "HW_CPU_X86_AVX2"}),
        projects=frozenset({"web"}),
    )


def test_the_digest_is_of_the_whole_token() -> None:
    found = parse_token_file(document(entry(TOKEN))).tokens["ci"]
    assert (found.digest, found.caller) == (digest_of(TOKEN), Caller(id="ci", role=Role.OPERATOR))


@pytest.mark.parametrize("projects", [[""], ["", "web"]])
def test_the_empty_project_is_a_project_like_any_other(projects: list[str]) -> None:
    assert caller(role="tenant", projects=projects).projects == frozenset(projects)


def test_names_are_compared_with_their_case() -> None:
    assert caller(role="tenant", projects=["web", "Web"]).projects == {"web", "Web"}


@pytest.mark.parametrize(
    "written",
    [
        "2027-01-31T00:00:00Z",
        "'2027-01-31T00:00:00Z'",
        "2027-01-31T01:00:00+01:00",
        "'2027-01-31T01:00:00+01:00'",
        "2027-01-31T00:00:00",
        "2027-01-31",
        "'2027-01-31'",
    ],
)
def test_times_are_iso_and_utc_unless_they_name_a_zone(written: str) -> None:
    text = document(entry(TOKEN)).rstrip() + f"\n  expires: {written}\n"
    assert parse_token_file(text).tokens["ci"].caller.expires_at_s == datetime(2027, 1, 31, tzinfo=UTC).timestamp()


def test_a_file_may_say_that_nobody_has_a_token() -> None:
    """The last token can be revoked."""
    assert parse_token_file("tokens: []").tokens == {}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"role": "tenant"}, "projects is empty: the role tenant needs at least one"),
        ({"role": "tenant", "projects": []}, "projects is empty"),
        ({"role": "agent"}, "hosts is empty: the role agent needs at least one"),
        ({"role": "root"}, "unknown role 'root': use tenant, agent, operator, reader"),
        ({"role": None}, "role is missing"),
        ({"role": "operator", "projects": ["web"]}, "projects is not for the role operator"),
        ({"role": "reader", "hosts": ["h1"]}, "hosts is not for the role reader"),
        ({**TENANT, "hosts": ["h1"]}, "hosts is not for the role tenant"),
        ({**AGENT, "claim_prefix": "a"}, "claim_prefix is not for the role agent"),
        ({**TENANT, "project": "web"}, "unknown field 'project': did you mean projects?"),
        ({**TENANT, "zzz": 1}, "unknown field 'zzz': use cell, claim_prefix"),
        ({**TENANT, "projects": "web"}, "projects must be a list"),
        ({**TENANT, "projects": [7]}, "a project must be a text, not 7: put it in quotes"),
        ({**TENANT, "projects": ["a b"]}, "project 'a b' is not a name"),
        ({**TENANT, "projects": ["web", "web"]}, "projects has 'web' twice"),
        ({**TENANT, "sees_hosts": "yes"}, "sees_hosts must be true or false, not 'yes'"),
        ({**TENANT, "claim_prefix": "{"}, "claim_prefix '{' is not a name"),
        ({**TENANT, "owner": "@me"}, "owner '@me' is no owner of claims"),
        ({**TENANT, "owner": 7}, "owner must be a text, not 7"),
        ({**AGENT, "owner": "ann"}, "owner is not for the role agent"),
        ({**TENANT, "project_wide": "no"}, "project_wide must be true or false"),
        ({"role": "operator", "project_wide": True}, "project_wide is not for the role operator"),
        ({**TENANT, "claim_prefix": "x" * 41}, "claim_prefix has 41 characters"),
        ({**AGENT, "hosts": ["h 1"]}, "host 'h 1' is not a name"),
        ({**AGENT, "hosts": [{}]}, "host must be a text"),
        ({**AGENT, "cell": ["c1"]}, "cell must be a text"),
        ({**AGENT, "traits": ["FAST"]}, "unknown trait 'FAST'"),
        ({"limits": {"request": 1}}, "limits has the unknown field 'request': did you mean requests?"),
        ({"limits": {"requests": 0}}, "limits.requests must be a whole number from 1"),
        ({"limits": {"streams": True}}, "limits.streams must be a whole number"),
        ({"limits": 7}, "limits must be a mapping"),
        ({"expires": "soon"}, "expires must be a time such as 2027-01-31T00:00:00Z, not 'soon'"),
        ({"expires": 7}, "expires must be a time"),
        ({"expires": None}, "expires must be a time"),
        ({"id": 7}, "id must be a text, not 7: put it in quotes"),
        ({"id": "a b"}, "token id 'a b' is not a name"),
        ({"sha256": "abc"}, "sha256 must be 64 hexadecimal digits"),
        ({"sha256": 7}, "sha256 must be 64 hexadecimal digits"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused(fields: dict[str, Any], words: str) -> None:
    reason = refused(document(entry(token("other")), entry(TOKEN, **fields)))
    assert reason.startswith("token 2")
    assert words in reason


@pytest.mark.parametrize("missing", ["id", "sha256"])
def test_a_field_that_is_missing_is_named(missing: str) -> None:
    given = entry(TOKEN)
    del given[missing]
    assert f"{missing} is missing" in refused(document(given))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("# nothing\n", "it is empty"),
        ("tokens:\n", "tokens must be a list, [] if nobody has one, not nothing"),
        ("tokens: {}\n", "tokens must be a list"),
        ("{}", "tokens must be a list"),
        ("[]", "it must be a mapping"),
        ("token: []", "unknown field 'token': did you mean tokens?"),
        ("tokens: [7]", "token 1: it must be a mapping of fields to values, not a int"),
        ("tokens: [", "not YAML: line 1"),
        ("tokens: []\ntokens: []\n", "not YAML: line"),
        ("a: 2026-02-30", "not YAML"),
        ("a: \x00", "not YAML"),
        pytest.param("[" * 5000, "nested too deeply", id="deep"),
        ("a: &a [*a]", "aliases"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(text: str, words: str) -> None:
    assert words in refused(text)


def test_an_id_or_a_digest_occurs_once() -> None:
    assert "has the id 'ci', as an earlier one has" in refused(document(entry(TOKEN), entry(token("ci", 2))))
    assert "has the sha256 of ci" in refused(document(entry(TOKEN), entry(TOKEN, id="other")))


@pytest.mark.parametrize(
    "text",
    [
        document(entry(TOKEN, id=TOKEN)),
        document(entry(TOKEN, sha256=TOKEN)),
        document(entry(TOKEN)) + f"   {TOKEN}: [",
        f"tokens: {TOKEN}",
        f"tokens: [{TOKEN}]",
        f"{TOKEN}",
    ],
)
def test_no_error_shows_a_token_that_is_in_the_wrong_place(text: str) -> None:
    assert TOKEN[-43:] not in refused(text)


def test_an_error_names_the_file_and_the_entry(tmp_path: Path) -> None:
    path = write(tmp_path / "tokens.yaml", document(entry(TOKEN, role="boss")))
    with pytest.raises(InvalidRequest, match=rf"^token file {path}: token 1 \(ci\): unknown role 'boss'"):
        read_token_file(path)
