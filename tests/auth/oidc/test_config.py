"""The section `oidc` of the token file: what it may have, and what is refused."""

from typing import Any

import pytest

from redsched.auth.oidc import config as module
from redsched.auth.oidc.config import read_oidc
from redsched.auth.token_file import parse_token_file
from redsched.errors import InvalidRequest
from tests.auth.parts import document

GIVEN: dict[str, Any] = {
    "issuer": "https://login.example.com",
    "audience": "redsched",
    "role_claim": "groups",
    "roles": {"ops": {"role": "operator"}},
}


def refused(**fields: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read_oidc({name: value for name, value in (GIVEN | fields).items() if value != "absent"})
    return str(caught.value)


def test_what_is_optional_has_safe_defaults() -> None:
    found = read_oidc(GIVEN)
    assert (found.jwks_url, found.algorithms, found.projects_claim, found.audience) == (
        "",
        ("RS256",),
        "",
        ("redsched",),
    )


def test_a_file_may_have_only_this_section() -> None:
    found = parse_token_file(document(oidc=GIVEN).replace("tokens: []\n", ""))
    assert (found.tokens, found.oidc) == ({}, read_oidc(GIVEN))


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/x", "http://[::1]:80/x", "http://localhost/x", "https://a/b"])
def test_http_is_for_this_machine(url: str) -> None:
    assert read_oidc(GIVEN | {"issuer": url, "jwks_url": url}).issuer == url


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"issuer": "absent"}, "issuer is missing"),
        ({"audience": "absent"}, "audience is missing"),
        ({"audience": []}, "audience is empty"),
        ({"audience": [7]}, "audience must be a text"),
        ({"role_claim": "absent"}, "role_claim is missing"),
        ({"roles": "absent"}, "roles is missing"),
        ({"roles": {}}, "roles must be a mapping"),
        ({"roles": {"ops": {"role": "boss"}}}, "roles: ops: unknown role 'boss'"),
        ({"roles": {"ops": {"role": "tenant"}}}, "roles: ops: projects is empty"),
        ({"roles": {"ops": {"role": "agent"}}, "projects_claim": "p"}, "roles: ops: hosts is empty"),
        ({"roles": {"ops": {"rol": "agent"}}}, "unknown field 'rol': did you mean role?"),
        ({"roles": {"ops": {"role": "operator", "expires": "2030-01-01"}}}, "unknown field 'expires'"),
        ({"roles": {7: {"role": "operator"}}}, "a key of roles must be a text"),
        ({"algorithms": ["none"]}, "algorithm 'none' is not accepted"),
        ({"algorithms": ["RS256", "HS256"]}, "algorithm 'HS256' is not accepted"),
        ({"algorithms": []}, "algorithms is empty"),
        ({"issuer": "http://login.example.com"}, "must be an https:// URL"),
        ({"jwks_url": "http://169.254.169.254/keys"}, "must be an https:// URL"),
        ({"issuer": "https://user:pass@example.com"}, "must be an https:// URL"),
        ({"issuer": "https://"}, "must be an https:// URL"),
        ({"issuer": "https://a:x"}, "must be an https:// URL"),
        ({"issuer": "https://[a"}, "must be an https:// URL"),
        ({"issuer": "file:///etc/passwd"}, "must be an https:// URL"),
        ({"issuer": 7}, "issuer must be a text"),
        ({"projects_claim": ""}, "projects_claim must be a text"),
        ({"jwks_uri": "https://a"}, "unknown field 'jwks_uri': did you mean jwks_url?"),
    ],
)
def test_what_cannot_be_used_is_refused(fields: dict[str, Any], words: str) -> None:
    reason = refused(**fields)
    assert reason.startswith("oidc: ")
    assert words in reason


@pytest.mark.parametrize("absent", ["jwt", "cryptography"])
def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == absent else object())
    assert "pip install 'redsched[oidc]'" in refused()
