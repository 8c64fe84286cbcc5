"""Where the API is, how it is verified, and the token that is sent to it."""

from pathlib import Path

import pytest

from redsched.errors import InvalidRequest
from redsched.rest import TokenFile, checked_url, tls_context
from tests.auth.parts import write
from tests.support.certificates import Authority


@pytest.mark.parametrize(
    "url", ["https://api.example:8443/", "http://127.0.0.1:8080", "http://[::1]:1", "http://localhost"]
)
def test_https_and_this_machine_are_accepted(url: str) -> None:
    assert checked_url(url, False, "allow it") == url.rstrip("/")


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
        checked_url(url, False, "allow it")
    assert "secret" not in str(refused.value)


def test_plain_http_to_another_machine_has_to_be_allowed() -> None:
    assert checked_url("http://api.example", True, "allow it") == "http://api.example"


def test_a_certificate_needs_its_key_and_files_have_to_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="both the certificate and its key"):
        tls_context("", "cert.pem", "")
    with pytest.raises(InvalidRequest, match="cannot be used"):
        tls_context(str(tmp_path / "none.pem"), "", "")


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.sign("h1", "h1")
    given = str(authority.ca), str(own.cert), str(own.key)
    assert tls_context(*given).get_ca_certs()
    own.key.chmod(0o640)
    with pytest.raises(InvalidRequest, match="mode 0640"):
        tls_context(*given)


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
