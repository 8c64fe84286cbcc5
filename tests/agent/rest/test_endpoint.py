"""Where the API is, how it is verified, and the token that is sent to it."""

import sys
from pathlib import Path

import pytest

from redsched.agent.rest.client import ApiClient
from redsched.agent.rest.endpoint import TokenFile, checked_api, tls_of
from redsched.errors import InvalidRequest
from redsched.settings import Settings
from tests.auth.parts import write
from tests.support.certificates import Authority


@pytest.mark.parametrize(
    "url", ["https://api.example:8443/", "http://127.0.0.1:8080", "http://[::1]:1", "http://localhost"]
)
def test_https_and_this_machine_are_accepted(url: str) -> None:
    assert checked_api(Settings(api=url)) == url.rstrip("/")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://api.example:8080", "plain http"),
        ("http://127.0.0.1.example", "plain http"),
        ("http://10.0.0.1", "plain http"),
        ("ftp://api.example", "is not one"),
        ("https://", "is not one"),
        ("https://api.example:x", "malformed"),
        ("https://user:secret@api.example", "user or password"),
        ("https://api.example/?x=1", "is not one"),
    ],
)
def test_other_urls_are_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why) as refused:
        checked_api(Settings(api=url))
    assert "secret" not in str(refused.value)


def test_plain_http_to_another_machine_has_to_be_allowed() -> None:
    assert checked_api(Settings(api="http://api.example", api_insecure=True)) == "http://api.example"


def test_a_certificate_needs_its_key_and_files_have_to_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="both api_cert and api_key"):
        tls_of(Settings(api_cert="cert.pem"))
    with pytest.raises(InvalidRequest, match="cannot be used"):
        tls_of(Settings(api_ca=str(tmp_path / "none.pem")))


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.sign("h1", "h1")
    given = {"api_ca": str(authority.ca), "api_cert": str(own.cert), "api_key": str(own.key)}
    assert tls_of(Settings(**given)).get_ca_certs()
    own.key.chmod(0o640)
    with pytest.raises(InvalidRequest, match="mode 0640"):
        tls_of(Settings(**given))


def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write(path, "first\n")
    file = TokenFile(str(path))
    assert file.token() == "first"
    write(path, "second\n")
    assert file.token() == "second"


def test_a_new_file_that_others_may_read_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write(path, "first\n")
    file = TokenFile(str(path))
    write(path, "second\n", 0o644)
    assert file.token() == "first"
    path.unlink()
    assert file.token() == "first"


def test_the_first_file_has_to_be_private(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write(path, "first\n", 0o640)
    with pytest.raises(InvalidRequest, match="mode 0640"):
        TokenFile(str(path))


async def test_without_httpx_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(InvalidRequest, match=r"redsched\[rest\]"):
        async with ApiClient.connect(Settings(api="https://api.example")):
            pass
