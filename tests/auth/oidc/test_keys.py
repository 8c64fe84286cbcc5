"""A provider's keys: fetched when needed, not often, kept when that fails, and from nowhere else."""

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from redsched.auth import authenticator as authenticator_module
from redsched.auth.authenticator import Authenticator
from redsched.auth.oidc import fetch, key_set
from redsched.auth.oidc.fetch import FetchFailed
from redsched.auth.oidc.key_set import KeySet, fetch_keys
from redsched.auth.oidc.verification import REFUSED
from redsched.errors import Unauthenticated
from tests.auth.oidc.provider import DISCOVERY, KEYS, Provider, public_jwk
from tests.auth.parts import authenticator, document, entry, token, write
from tests.support.waiting import wait_until


@pytest.fixture
def path(oidc: Provider, tmp_path: Path) -> Path:
    return write(tmp_path / "tokens.yaml", yaml.safe_dump({"oidc": oidc.config(jwks_url=oidc.issuer + KEYS)}))


@pytest.fixture
def auth(path: Path) -> Authenticator:
    return authenticator(path)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_set, "MIN_PAUSE_S", 0)
    monkeypatch.setattr(key_set, "RETRY_PAUSE_S", 0)


async def is_known(auth: Authenticator, text: str) -> bool:
    try:
        return bool(await auth.identify(text))
    except Unauthenticated:
        return False


async def test_unknown_key_ids_cause_one_fetch(auth: Authenticator, oidc: Provider) -> None:
    """Whoever invents them must not make this process a source of load for the provider."""
    assert await is_known(auth, oidc.token())
    results = await asyncio.gather(*(is_known(auth, oidc.token(key_id=f"x{number}")) for number in range(50)))
    assert (any(results), oidc.asked) == (False, [KEYS])


async def test_tokens_that_arrive_together_wait_for_one_fetch(auth: Authenticator, oidc: Provider) -> None:
    oidc.may_answer.clear()
    tasks = [asyncio.create_task(is_known(auth, oidc.token(sub=f"u{number}"))) for number in range(20)]
    await wait_until(lambda: bool(oidc.asked))
    oidc.may_answer.set()
    assert (all(await asyncio.gather(*tasks)), oidc.asked) == (True, [KEYS])


@pytest.mark.usefixtures("no_pauses")
async def test_rotated_keys_are_followed(auth: Authenticator, oidc: Provider) -> None:
    """A token of the withdrawn key is refused then, though it was accepted and cached before."""
    first = oidc.token()
    assert await is_known(auth, first)
    oidc.documents[KEYS] = {"keys": [public_jwk("RSA", "k2", "second")]}
    assert await is_known(auth, oidc.token(key_id="k2", name="second"))
    assert not await is_known(auth, first)


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("answer", [500, 404, b"{", {}, {"keys": []}, {"keys": [7]}, b"[" * 100_000, (302, "/other")])
async def test_keys_are_kept_when_a_fetch_fails(auth: Authenticator, oidc: Provider, answer: object) -> None:
    assert await is_known(auth, oidc.token())
    oidc.documents[KEYS] = answer
    with structlog.testing.capture_logs() as logged:
        assert not await is_known(auth, oidc.token(key_id="k2"))
    assert [(one["event"], one["kept"]) for one in logged] == [("oidc_keys_not_fetched", 1)]
    assert await is_known(auth, oidc.token(sub="bob"))


async def test_without_keys_the_reason_is_the_provider(auth: Authenticator, oidc: Provider) -> None:
    oidc.documents[KEYS] = 503
    with pytest.raises(Unauthenticated, match="keys of the OpenID Connect provider cannot be fetched"):
        await auth.identify(oidc.token())


async def test_old_keys_are_fetched_again_without_a_request(
    auth: Authenticator, oidc: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authenticator_module, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(key_set, "MAX_AGE_S", 0.02)
    monkeypatch.setattr(key_set, "MIN_PAUSE_S", 0.02)
    stop = asyncio.Event()
    watching = asyncio.create_task(auth.watch_file(stop))
    await wait_until(lambda: len(oidc.asked) >= 3)
    stop.set()
    await watching


async def test_keys_stay_when_the_file_changes(
    auth: Authenticator, oidc: Provider, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit of the file while the provider is down must not shut everybody out. Roles follow the file at once."""
    monkeypatch.setattr(authenticator_module, "LOOK_EVERY_S", 0.01)
    text = oidc.token()
    caller = await auth.identify(text)
    oidc.documents[KEYS] = 500
    stop = asyncio.Event()
    watching = asyncio.create_task(auth.watch_file(stop))
    config = oidc.config(jwks_url=oidc.issuer + KEYS, roles={"ops": {"role": "reader"}})
    write(path, document(entry(token("ci")), oidc=config))
    await wait_until(lambda: not auth.still_valid(caller))
    await wait_until(lambda: is_known(auth, token("ci")))
    changed = await auth.identify(text)
    assert changed.role == "reader"
    assert auth.still_valid(changed)
    write(path, document(entry(token("ci"), role="reader"), oidc=config))
    await wait_until(lambda: _is_role(auth, token("ci"), "reader"))
    assert auth.still_valid(changed), "its section has not changed"
    write(path, document(entry(token("ci"))))
    await wait_until(lambda: not auth.still_valid(changed))
    assert not await is_known(auth, text)
    stop.set()
    await watching


async def _is_role(auth: Authenticator, text: str, role: str) -> bool:
    return (await auth.identify(text)).role == role


async def test_a_slow_provider_holds_up_nobody_else(
    oidc: Provider, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait ends after a time, and one thread at most waits for the provider."""
    monkeypatch.setattr(key_set, "WAIT_S", 0.01)
    monkeypatch.setattr(key_set, "RETRY_PAUSE_S", 0)
    write(path, document(entry(token("ci")), oidc=oidc.config(jwks_url=oidc.issuer + KEYS)))
    auth = authenticator(path)
    oidc.may_answer.clear()
    for number in range(5):
        assert not await is_known(auth, oidc.token(sub=f"u{number}"))
    assert (await auth.identify(token("ci"))).id == "ci"
    oidc.may_answer.set()
    await wait_until(lambda: is_known(auth, oidc.token()))
    assert oidc.asked == [KEYS]


def keys_of(oidc: Provider, jwks_url: str = "") -> list[dict[str, Any]]:
    return fetch_keys(oidc.issuer, jwks_url)


def test_discovery_names_the_keys(oidc: Provider) -> None:
    assert [key["kid"] for key in keys_of(oidc)] == ["k1"]
    assert oidc.asked == [DISCOVERY, KEYS]


@pytest.mark.parametrize(
    ("document_found", "words"),
    [
        ({"issuer": "https://evil.example.com", "jwks_uri": "x"}, "of another issuer"),
        ({"issuer": None}, "no jwks_uri"),
        ({"issuer": None, "jwks_uri": "http://example.com/keys"}, "must be an https:// URL"),
        ({"issuer": None, "jwks_uri": "file:///etc/passwd"}, "must be an https:// URL"),
        ({"issuer": None, "jwks_uri": "ftp://127.0.0.1/keys"}, "must be an https:// URL"),
        ([], "not a JSON object"),
    ],
)
def test_discovery_of_something_else_is_refused(oidc: Provider, document_found: Any, words: str) -> None:
    if document_found and document_found["issuer"] is None:
        document_found = {**document_found, "issuer": oidc.issuer}
    oidc.documents[DISCOVERY] = document_found
    with pytest.raises(FetchFailed, match=words):
        keys_of(oidc)


def test_redirects_are_not_followed(oidc: Provider) -> None:
    oidc.documents["/moved"] = (302, oidc.issuer + KEYS)
    with pytest.raises(FetchFailed, match="status 302"):
        keys_of(oidc, f"{oidc.issuer}/moved")
    assert oidc.asked == ["/moved"]


def test_size_and_time_are_limited(oidc: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    oidc.documents[KEYS] = b" " * 600_000
    with pytest.raises(FetchFailed, match="more than 524288 bytes"):
        keys_of(oidc)
    monkeypatch.setattr(fetch, "MAX_TIME_S", 0.0)
    oidc.documents[KEYS] = {"keys": [public_jwk("RSA", "k1")]}
    with pytest.raises(FetchFailed, match="took more than"):
        keys_of(oidc, oidc.issuer + KEYS)
    monkeypatch.setattr(fetch, "SOCKET_TIMEOUT_S", 0.05)
    oidc.may_answer.clear()
    with pytest.raises(FetchFailed, match="timed out"):
        keys_of(oidc)


@pytest.mark.parametrize("kind", ["none listens", "not TLS"])
def test_a_provider_that_cannot_be_reached_is_reported(oidc: Provider, kind: str) -> None:
    url = "http://127.0.0.1:1/keys" if kind == "none listens" else oidc.issuer.replace("http:", "https:")
    with pytest.raises(FetchFailed, match=url):
        keys_of(oidc, url)


def test_a_provider_that_does_not_speak_http_is_reported(oidc: Provider) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        other = threading.Thread(target=greet, args=(listener,))
        other.start()
        with pytest.raises(FetchFailed, match="SSH-2"):
            keys_of(oidc, f"http://127.0.0.1:{listener.getsockname()[1]}/keys")
        other.join()


def greet(listener: socket.socket) -> None:
    """Answer one request as another protocol does."""
    client, _ = listener.accept()
    with client:
        client.recv(65_536)
        client.sendall(b"SSH-2.0-x\r\n")


def test_keys_that_are_not_for_signatures_are_left_out(oidc: Provider) -> None:
    unfit = [
        public_jwk("RSA", "enc", use="enc"),
        public_jwk("RSA", "ops", key_ops=["encrypt"]),
        {"kty": "oct", "kid": "oct", "k": "AAAA"},
        public_jwk("RSA", "huge") | {"n": "A" * 2000},
        public_jwk("RSA", "list") | {"n": []},
        "text",
    ]
    oidc.documents[KEYS] = {"keys": [*unfit, public_jwk("EC", "k1", d="secret", x5c=["x"])]}
    [found] = keys_of(oidc)
    assert found.keys() == {"kty", "kid", "use", "crv", "x", "y"}


async def test_a_key_is_for_its_algorithm_alone(oidc: Provider) -> None:
    oidc.documents[KEYS] = {"keys": [public_jwk("RSA", "k1", alg="RS256"), public_jwk("EC", "k2")]}
    keys = KeySet(oidc.issuer, "")
    assert [key.algorithm_name for key in await keys.find("k1", "RS256")] == ["RS256"]
    for key_id, algorithm in (("k1", "PS256"), ("k1", "ES256"), ("k2", "RS256"), ("k2", "ES384"), ("k1", "EdDSA")):
        assert await keys.find(key_id, algorithm) == []


async def test_a_malformed_key_is_refused_and_does_no_harm(auth: Authenticator, oidc: Provider) -> None:
    oidc.documents[KEYS] = {"keys": [public_jwk("RSA", "k0") | {"n": "%"}, public_jwk("RSA", "k1")]}
    assert await is_known(auth, oidc.token())
    with pytest.raises(Unauthenticated, match=REFUSED):
        await auth.identify(oidc.token(key_id="k0"))
