"""Store URLs: which are accepted and how they are read, and that an error about a bad one leaves out its password."""

import pytest

from redsched.errors import InvalidRequest
from redsched.store.topology.url import Kind, StoreUrl, check_url, parse, without_password

GOOD = {
    "redis://localhost": (Kind.SERVER, (("localhost", 6379),)),
    "redis://localhost:6379/0": (Kind.SERVER, (("localhost", 6379),)),
    "redis://user:secret@[::1]:6379/1": (Kind.SERVER, (("::1", 6379),)),
    "rediss://:p%2Fw@store:6380?ssl_ca_certs=/ca.pem": (Kind.SERVER, (("store", 6380),)),
    "unix:///run/redis.sock": (Kind.SERVER, ()),
    "unix://user:secret@/run/redis.sock?db=1": (Kind.SERVER, ()),
    "sentinel://s1,s2:26380,[::1]:5/main": (Kind.SENTINEL, (("s1", 26379), ("s2", 26380), ("::1", 5))),
    "sentinel://s1/main/3?tls=yes&sentinel_username=u&sentinel_password=p": (Kind.SENTINEL, (("s1", 26379),)),
    "cluster://user:secret@n1,n2:7000": (Kind.CLUSTER, (("n1", 6379), ("n2", 7000))),
}
BAD = {
    "no scheme": ("localhost:6379", "begins with none of"),
    "another scheme": ("http://localhost", "begins with none of"),
    "port not a number": ("redis://h:abc/0", "is not of the form host:port"),
    "port too large": ("redis://h:65536", "port 65536"),
    "bracket left open": ("redis://[::1", ""),
    "database not a number": ("redis://h?db=x", "db is a number"),
    "two databases": ("redis://h/1/2", "nothing may follow"),
    "a fragment": ("redis://h/1#2", "nothing may follow a #"),
    "an option of the client library": ("redis://h?socket_timeout=2", "'socket_timeout' is not one of db"),
    "an option that would undo what is relied on": ("redis://h?protocol=3", "'protocol' is not one of db"),
    "tls where the scheme says it": ("redis://h?tls=yes", "'tls' is not one of db"),
    "a relative socket": ("unix://run/redis.sock", "third /"),
    "no primary": ("sentinel://s1:26379", "name by which the Sentinels know the primary"),
    "an empty Sentinel": ("sentinel://s1,,s2/main", "is not of the form host:port"),
    "a database of a cluster": ("cluster://n1/1", "a cluster has no databases"),
    "a db option of a cluster": ("cluster://n1?db=1", "'db' is not one of"),
    "certificates without TLS": ("cluster://n1?ssl_certfile=x", "need tls=yes"),
    "neither yes nor no": ("cluster://n1?tls=perhaps", "tls is yes or no"),
    "an unknown check": ("rediss://h?ssl_cert_reqs=some", "ssl_cert_reqs is"),
}


@pytest.mark.parametrize("url", GOOD)
def test_a_good_url_is_taken(url: str) -> None:
    assert check_url(url) == url
    assert (parse(url).kind, parse(url).nodes) == GOOD[url]


def test_each_part_of_a_url_is_understood() -> None:
    assert parse("unix://user:p%2Fw@/run/a%20b.sock?db=1") == StoreUrl(
        "unix://user:p%2Fw@/run/a%20b.sock?db=1",
        Kind.SERVER,
        path="/run/a b.sock",
        db=1,
        username="user",
        password="p/w",
    )
    found = parse(
        "sentinel://:secret@s1/main/3?tls=yes&sentinel_username=u&sentinel_password=p&ssl_check_hostname=no&ssl_ca_certs=c"
    )
    assert (found.master, found.db, found.tls, found.username, found.password) == ("main", 3, True, None, "secret")
    assert found.sentinel_login == {"username": "u", "password": "p"}
    assert found.options == {"ssl_check_hostname": False, "ssl_ca_certs": "c"}
    assert parse("rediss://h").tls


@pytest.mark.parametrize(("url", "why"), BAD.values(), ids=BAD)
def test_a_bad_url_is_an_invalid_request_with_the_reason_and_the_way_out(url: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match="redis://host:port/0") as raised:
        check_url(url)
    assert url in raised.value.detail
    assert why in raised.value.detail


@pytest.mark.parametrize(
    "url",
    [
        "redis://u:secret@h:abc",
        "redis://:sec/ret@h",
        "redis://:se#cret@h",
        "redis://:se?cret@h",
        "http://u:secret@h",
        "sentinel://:sec,ret@s1",
        "cluster://u:secret@n1/1",
        "sentinel://s1/main?sentinel_password=secret&timeout=1",
    ],
)
def test_a_bad_url_is_reported_without_its_password(url: str) -> None:
    """A `/` in a password ends the host: what precedes it looks like a port."""
    with pytest.raises(InvalidRequest) as raised:
        check_url(url)
    assert not any(part in raised.value.detail.replace("***", "") for part in ("sec", "cret@", "ret@"))


def test_a_good_url_is_shown_without_its_password() -> None:
    assert without_password("redis://u:secret@h:1/0") == "redis://u:***@h:1/0"
    assert without_password("redis://h:1/0") == "redis://h:1/0"
    assert without_password("redis://u@h:1/0") == "redis://u@h:1/0"
    shown = without_password("sentinel://:secret@s1,s2/main?sentinel_password=secret&tls=yes")
    assert shown == "sentinel://:***@s1,s2/main?sentinel_password=***&tls=yes"
