"""The bind guard: `api` and `up` listen beyond this machine only with authentication and TLS, or on demand."""

import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from redsched.errors import InvalidRequest
from redsched.serve.exposure import check_exposure, is_loopback, parse_address, peers
from redsched.serve.supervisor import Workers
from redsched.settings import Settings
from tests.cli.parts import COMMAND, ask, run, running, up
from tests.support.certificates import Authority
from tests.support.waiting import wait_until_sync

ANYWHERE = ("0.0.0.0", "::", "", "192.0.2.1", "10.0.0.5", "2001:db8::1", "fe80::1%lo", "::ffff:10.0.0.5", "no.invalid")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "::ffff:127.0.0.1"])
def test_loopback_needs_nothing(host: str) -> None:
    check_exposure(host, Settings())


@pytest.mark.parametrize("host", ANYWHERE)
def test_other_addresses_need_authentication_and_tls(host: str) -> None:
    for given, words in (
        ({}, ("REDSCHED_AUTH", "--tls-cert", "--insecure")),
        ({"auth": "a"}, ("--tls-cert", "--behind-proxy")),
        ({"tls_cert": "a", "tls_key": "b"}, ("REDSCHED_AUTH",)),
        ({"behind_proxy": "10.0.0.5"}, ("REDSCHED_AUTH",)),
    ):
        with pytest.raises(InvalidRequest) as raised:
            check_exposure(host, Settings(**given))
        assert all(word in str(raised.value) for word in words)
    check_exposure(host, Settings(auth="a", tls_cert="a", tls_key="b"))
    check_exposure(host, Settings(auth="a", behind_proxy="10.0.0.5"))
    check_exposure(host, Settings(), insecure=True)


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["127.0.0.1"], True),
        (["127.0.0.1", "::1"], True),
        (["127.0.0.1", "192.0.2.7"], False),
        (["192.0.2.7", "127.0.0.1"], False),
        ([], False),
    ],
)
def test_a_name_is_loopback_if_all_its_addresses_are(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], expected: bool
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in addresses]
    monkeypatch.setattr("redsched.serve.exposure.socket.getaddrinfo", lambda *_, **__: found)
    assert is_loopback("db1") is expected


def test_a_name_that_changes_between_check_and_bind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that the socket has is checked, not only the name."""
    answers = iter([True, False])
    monkeypatch.setattr("redsched.serve.exposure.is_loopback", lambda _: next(answers))
    with pytest.raises(InvalidRequest, match="REDSCHED_AUTH"):
        Workers("127.0.0.1", 0, 1)


def test_only_the_proxy_and_this_machine_may_connect() -> None:
    found = peers(Settings(behind_proxy="10.0.0.5, 10.1.0.0/16,fd00::/8"))
    assert found is not None
    for one in ("10.0.0.5", "::ffff:10.0.0.5", "10.1.255.1", "fd00::7", "127.0.0.1", "::1"):
        assert found.accept(one), one
    for one in ("10.0.0.6", "10.2.0.1", "::ffff:10.0.0.6", "2001:db8::1", "", "here"):
        assert not found.accept(one), one
    assert peers(Settings()) is None
    assert parse_address("fe80::1%lo") is not None


def test_addresses_of_a_proxy_are_checked() -> None:
    run("api", "--behind-proxy", "10.0.0.5,proxy", environment={"REDSCHED_REDIS_URL": "redis://a"}).check_failed(
        2, "REDSCHED_BEHIND_PROXY", "proxy", "10.1.0.0/16"
    )


@pytest.mark.parametrize("command", ["api", "up"])
def test_commands_refuse_before_anything_is_started(command: str) -> None:
    environment = {"REDSCHED_REDIS_URL": "unix:///nowhere.sock"}
    run(command, "--host", "0.0.0.0", "--port", "0", environment=environment).check_failed(
        2, "'0.0.0.0'", "REDSCHED_AUTH", "--tls-cert", "--insecure"
    )


@pytest.mark.parametrize("command", ["api", "up"])
def test_unusable_tls_files_are_one_line(command: str, tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("api")
    pair.key.chmod(0o644)
    environment = {"REDSCHED_REDIS_URL": "unix:///nowhere.sock", "REDSCHED_TLS_KEY": str(pair.key)}
    words = (command, "--port", "0", "--tls-cert", str(pair.cert))
    run(*words, environment=environment).check_failed(2, "api.key", "0644", "chmod 600")
    run(*words[:-2], environment=environment).check_failed(2, "--tls-cert")


def test_insecure_listens_anywhere() -> None:
    with up("--no-agent", "--host", "0.0.0.0", "--insecure") as started:
        assert ask(f"http://127.0.0.1:{started.api.rpartition(':')[2]}/healthz") == {"status": "ok"}


def test_up_serves_https_and_renews_its_certificate(tmp_path: Path) -> None:
    """Options reach the workers; the line to try works for who has the files."""
    authority = Authority(tmp_path)
    pair = authority.sign("api")
    files = ("--tls-cert", str(pair.cert), "--tls-key", str(pair.key), "--tls-ca", str(authority.ca))
    with up("--no-agent", *files) as started:
        assert started.api.startswith("https://127.0.0.1:")
        assert "--cert CLIENT.pem" in started.said["try"]
        context = ssl.create_default_context(cafile=authority.ca)
        with pytest.raises((urllib.error.URLError, OSError)):
            urllib.request.urlopen(f"{started.api}/healthz", context=context, timeout=20)
        own = authority.sign("client", "h1")
        context.load_cert_chain(own.cert, own.key)
        with urllib.request.urlopen(f"{started.api}/healthz", context=context, timeout=20) as answer:
            assert answer.status == 200
        port = int(started.api.rpartition(":")[2])
        first = _shown(port, context)
        renewed = authority.sign("renewed")
        pair.cert.write_bytes(renewed.cert.read_bytes())
        pair.key.write_bytes(renewed.key.read_bytes())
        wait_until_sync(lambda: _shown(port, context) != first)


def _shown(port: int, context: ssl.SSLContext) -> object:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as inside,
    ):
        return (inside.getpeercert() or {})["serialNumber"]


def test_a_protected_api_is_ready_without_being_asked(store: str, tmp_path: Path) -> None:
    """`api` behind a proxy accepts this machine."""
    environment = {"REDSCHED_REDIS_URL": store}
    words = ("api", "--port", "0", "--behind-proxy", "192.0.2.9")
    with running(*COMMAND, *words, environment=environment, forked=False) as process:
        wait_until_sync(lambda: bool(process.lines), timeout=30)
        assert ask(f"{process.lines[0].split()[4].rstrip(',')}/healthz") == {"status": "ok"}
