"""Access tokens: their form, and the id in it."""

import base64

import pytest

from redsched.auth.access_token import check_id, digest_of, id_of, new_token
from redsched.errors import InvalidRequest


def test_a_token_has_32_random_bytes() -> None:
    first, second = new_token("ci"), new_token("ci")
    assert first != second
    assert len(base64.urlsafe_b64decode(first.removeprefix("rst_ci_") + "=")) == 32


@pytest.mark.parametrize("token_id", ["ci", "web_ci", "a_", "rst", "a_b_c", "x" * 63])
@pytest.mark.parametrize("secret", ["_" * 43, "a_b" * 14 + "_", "A" * 43])
def test_the_id_is_found_whatever_underscores_there_are(
    monkeypatch: pytest.MonkeyPatch, token_id: str, secret: str
) -> None:
    """Base64url has underscores too, so that the last one does not separate."""
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: secret)
    assert id_of(new_token(token_id)) == token_id


@pytest.mark.parametrize("text", ["", "rst_", "rst_ci_", "rst_ci_short", "a.b.c", f"rxt_ci_{'A' * 43}", "_" * 43])
def test_other_texts_have_no_id(text: str) -> None:
    assert id_of(text) == ""


def test_any_text_has_a_digest() -> None:
    """A header's bytes may be anything."""
    assert len(digest_of("\udcff\x00")) == 32


@pytest.mark.parametrize("value", ["", "a b", "oidc:x", "x" * 64, "rst_ci", "a/b", 7, None, True])
def test_an_id_is_a_name(value: object) -> None:
    with pytest.raises(InvalidRequest):
        check_id(value)


def test_a_token_in_place_of_an_id_is_not_shown() -> None:
    given = new_token("ci")
    with pytest.raises(InvalidRequest, match="give the id alone") as caught:
        check_id(given)
    assert given[-43:] not in str(caught.value)
