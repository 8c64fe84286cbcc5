"""Stores over TLS with real servers: one server, Sentinel and a cluster; and what refuses to connect, and why."""

import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redsched.errors import InvalidRequest, RedschedError, StoreUnavailable
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome
from redsched.store.embedded.binary import ServerBinary
from redsched.store.embedded.server import find_servers
from redsched.store.store import Store
from redsched.store.topology.url import parse
from tests.support.certificates import Authority, Pair
from tests.support.secret_watch import MARK
from tests.support.setups.node import HOST, PATIENCE_S, Node, free_port, started
from tests.support.waiting import wait_until_sync

PATIENT = {"cells": "c1", "reply_timeout_s": 30.0}
PASSWORD = f"{MARK}tls"


def _with_tls() -> list[ServerBinary]:
    """Return the usable servers that were built with TLS: those link OpenSSL, or know the option."""
    return [one for one in find_servers() if not one.problem and _has_tls(one)]


def _has_tls(one: ServerBinary) -> bool:
    asked = subprocess.run(
        [one.path, "--port", "0", "--tls-port", "1", "--tls-cert-file", "/nix", "--daemonize", "no"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "Failed to configure TLS" in asked.stdout + asked.stderr


SERVERS = {f"{one.kind}-{one.version}": one for one in _with_tls()}
NONE = "no redis-server or valkey-server on this machine was built with TLS: install Debian's redis-server"

pytestmark = pytest.mark.skipif(not SERVERS, reason=NONE)


class TlsNode(Node):
    """A server that listens on its port with TLS alone, and requires a certificate."""

    def __init__(self, binary: ServerBinary, ca: Path, own: Pair, chosen: dict[str, str] | None = None) -> None:
        super().__init__(binary, chosen or {})
        self.ca, self.own = ca, own

    def command(self) -> Sequence[str]:
        return [*super().command(), "--port", "0", *(word for line in self.tls() for word in line)]

    def tls(self) -> list[tuple[str, str]]:
        return [
            ("--tls-port", str(self.port)),
            ("--tls-cert-file", str(self.own.cert)),
            ("--tls-key-file", str(self.own.key)),
            ("--tls-ca-cert-file", str(self.ca)),
            ("--tls-replication", "yes"),
        ]

    def client(self) -> Any:
        return redis.Redis(
            host=HOST,
            port=self.port,
            protocol=2,
            decode_responses=True,
            socket_timeout=PATIENCE_S,
            retry=Retry(NoBackoff(), 0),
            ssl=True,
            ssl_ca_certs=str(self.ca),
            ssl_certfile=str(self.own.cert),
            ssl_keyfile=str(self.own.key),
        )


class TlsSentinel(TlsNode):
    """A Sentinel that uses TLS to everybody."""

    def __init__(self, primary: TlsNode, binary: ServerBinary) -> None:
        super().__init__(binary, primary.ca, primary.own)
        file = self.folder / "sentinel.conf"
        options = "".join(f"{name.removeprefix('--')} {value}\n" for name, value in self.tls())
        file.write_text(
            f"bind {HOST}\nport 0\ndir {self.folder}\n{options}sentinel monitor main {HOST} {primary.port} 1\n"
        )
        self._file = file

    def command(self) -> Sequence[str]:
        return [str(self._file), "--sentinel"]


class World:
    """An authority, a server of each kind, and a client's certificate."""

    def __init__(self, folder: Path, binary: ServerBinary, stack: ExitStack) -> None:
        self.folder, self._binary, self._stack = folder, binary, stack
        self.authority, self.other = Authority(folder), Authority(folder, "other")
        self._server, self.client = self.authority.sign("server"), self.authority.sign("client", "h1")
        self.server = self.node({})

    def node(self, chosen: dict[str, str]) -> TlsNode:
        return started(self._stack, TlsNode(self._binary, self.authority.ca, self._server, chosen))

    def sentinel(self, primary: TlsNode) -> TlsSentinel:
        return started(self._stack, TlsSentinel(primary, self._binary))

    def server_of(self, own: Pair) -> TlsNode:
        """Return a server with a certificate that clients refuse: it has started once its port is open."""
        node = TlsNode(self._binary, self.authority.ca, own)
        node.client = lambda: _OpenPort(node.port)  # type: ignore[method-assign]
        return started(self._stack, node)

    def options(self, ca: Path | None = None, own: Pair | None = None) -> str:
        own = own or self.client
        return f"ssl_ca_certs={ca or self.authority.ca}&ssl_certfile={own.cert}&ssl_keyfile={own.key}"

    def url(self, options: str = "") -> str:
        return f"rediss://:{PASSWORD}@{HOST}:{self.server.port}?{options or self.options()}"


@pytest.fixture(scope="module", params=SERVERS.values(), ids=list(SERVERS))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        found = World(tmp_path_factory.mktemp("tls"), request.param, stack)
        with found.server.asked() as client:
            client.config_set("requirepass", PASSWORD)
        yield found


async def works(url: str) -> None:
    """Make calls of every kind: reads, scripts and pipelines."""
    async with Store.connect(url, Settings(redis_url=url, **PATIENT)) as store:
        assert (await store.cell("c1").init()).outcome in (Outcome.OK, Outcome.ALREADY_DONE)
        assert await store.memory_policy() == "noeviction"


async def failure(url: str, kind: type[RedschedError] = StoreUnavailable) -> str:
    """Return the error of connecting, which has no secret."""
    with pytest.raises(kind) as raised:
        await works(url)
    assert PASSWORD not in raised.value.detail
    assert "PRIVATE KEY" not in raised.value.detail
    return raised.value.detail


async def test_a_server_over_tls(world: World) -> None:
    await works(world.url())


async def test_the_primary_that_sentinels_name_over_tls(world: World) -> None:
    sentinel = world.sentinel(world.node({}))
    await works(f"sentinel://{HOST}:{sentinel.port}/main?tls=yes&{world.options()}")
    assert "certificate verify failed" in await failure(
        f"sentinel://{HOST}:{sentinel.port}/main?tls=yes&{world.options(ca=world.other.ca)}"
    )


async def test_a_cluster_over_tls(world: World) -> None:
    chosen = {"cluster-enabled": "yes", "tls-cluster": "yes", "cluster-port": str(free_port())}
    node = world.node(chosen)
    with node.asked() as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        wait_until_sync(lambda: "cluster_state:ok" in str(client.execute_command("CLUSTER INFO")) or _is_ok(client))
    await works(f"cluster://{HOST}:{node.port}?tls=yes&{world.options()}")


def _is_ok(client: Any) -> bool:
    found = client.execute_command("CLUSTER INFO")
    return isinstance(found, dict) and found.get("cluster_state") == "ok"


async def test_an_authority_that_did_not_sign_is_named_as_the_reason(world: World) -> None:
    assert "certificate verify failed" in await failure(world.url(world.options(ca=world.other.ca)))


async def test_a_server_with_another_name_is_refused(world: World) -> None:
    url = world.url().replace(f"@{HOST}:", "@localhost:")
    await works(url)
    node = world.server_of(world.authority.sign("elsewhere", "elsewhere.example"))
    plain = f"rediss://{HOST}:{node.port}?{world.options()}"
    assert "certificate is not valid for" in await failure(plain)
    await works(f"{plain}&ssl_check_hostname=no")


async def test_a_client_without_a_certificate_is_refused(world: World) -> None:
    await failure(world.url(f"ssl_ca_certs={world.authority.ca}"))


async def test_a_client_of_another_authority_is_refused(world: World) -> None:
    await failure(world.url(world.options(own=world.other.sign("stranger", "h1"))))


async def test_an_expired_certificate_is_named_as_the_reason(world: World) -> None:
    past = world.authority.sign("past", until=datetime.now(UTC) - timedelta(days=1))
    node = world.server_of(past)
    assert "certificate has expired" in await failure(f"rediss://{HOST}:{node.port}?{world.options()}")


class _OpenPort:
    """A client that finds its server well once it accepts connections."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __enter__(self) -> "_OpenPort":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ping(self) -> None:
        try:
            socket.create_connection((HOST, self._port), timeout=PATIENCE_S).close()
        except OSError as error:
            raise redis.ConnectionError from error


async def test_plain_connections_to_a_tls_port_fail(world: World) -> None:
    await failure(f"redis://:{PASSWORD}@{HOST}:{world.server.port}")


@pytest.mark.parametrize("mode", [0o640, 0o604])
async def test_a_key_that_others_may_read_is_refused(world: World, mode: int) -> None:
    loose = world.authority.sign(f"loose{mode}", "h1")
    loose.key.chmod(mode)
    found = await failure(world.url(world.options(own=loose)), InvalidRequest)
    assert f"has mode {mode:04o}" in found
    both = world.folder / f"both{mode}.pem"
    both.write_bytes(loose.cert.read_bytes() + loose.key.read_bytes())
    both.chmod(mode)
    options = f"ssl_ca_certs={world.authority.ca}&ssl_certfile={both}"
    assert f"has mode {mode:04o}" in await failure(world.url(options), InvalidRequest)
    both.chmod(0o600)
    await works(world.url(options))


async def test_files_that_cannot_be_used_are_named(world: World) -> None:
    for options, word in (
        (f"ssl_ca_certs={world.folder}/nix.pem", "nix.pem cannot be used: No such file"),
        (world.options(own=Pair(world.client.cert, world.folder / "nix.key")), "nix.key"),
        (world.options(own=Pair(world.client.cert, world.authority.sign("third", "h1").key)), "MISMATCH"),
        (f"ssl_keyfile={world.client.key}", "ssl_certfile"),
    ):
        assert word in await failure(world.url(options), InvalidRequest)


def test_the_options_are_those_of_all_forms() -> None:
    options = "ssl_ca_certs=a&ssl_certfile=b&ssl_keyfile=c"
    for form in ("rediss://h?", "sentinel://h/main?tls=yes&", "cluster://h?tls=yes&"):
        found = parse(form + options)
        assert found.tls
        assert found.options == {"ssl_ca_certs": "a", "ssl_certfile": "b", "ssl_keyfile": "c"}
