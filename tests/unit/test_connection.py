"""Store URLs: which are taken, and that a bad one is said without its password."""

import pytest

from redsched.errors import InvalidRequest
from redsched.store.connection import check_url, without_password

GOOD = [
    "redis://localhost",
    "redis://localhost:6379/0",
    "redis://user:secret@[::1]:6379/1?socket_timeout=2",
    "rediss://:p%2Fw@store:6380",
    "unix:///run/redis.sock",
    "unix://user:secret@/run/redis.sock?db=1",
]
BAD = {
    "no scheme": "localhost:6379",
    "another scheme": "http://localhost",
    "port not a number": "redis://h:abc/0",
    "port too large": "redis://h:65536",
    "bracket left open": "redis://[::1",
    "database not a number": "redis://h?db=x",
}


@pytest.mark.parametrize("url", GOOD)
def test_a_good_url_is_returned_as_it_is(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize("url", BAD.values(), ids=BAD)
def test_a_bad_url_is_an_invalid_request_with_the_way_out(url: str) -> None:
    with pytest.raises(InvalidRequest, match="redis://host:port/0") as raised:
        check_url(url)
    assert url in raised.value.detail


@pytest.mark.parametrize("url", ["redis://u:secret@h:abc", "redis://:sec/ret@h", "http://u:secret@h"])
def test_a_bad_url_is_said_without_its_password(url: str) -> None:
    """A "/" in a password ends the host: what stands before it looks like a port."""
    with pytest.raises(InvalidRequest) as raised:
        check_url(url)
    assert "sec" not in raised.value.detail


def test_a_good_url_is_shown_without_its_password() -> None:
    assert without_password("redis://u:secret@h:1/0") == "redis://u:***@h:1/0"
    assert without_password("redis://h:1/0") == "redis://h:1/0"
