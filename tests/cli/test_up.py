"""`redsched up`, `api` and `agent` as processes: what they print, that it works, and that nothing outlives them."""

import os
import signal
import socket
from pathlib import Path

import pytest

from redsched.store.embedded.server import PrivateServer
from tests.cli.conftest import Redsched
from tests.cli.parts import COMMAND, ask, check_nothing_left, curl, descendants, run, running, runs, up
from tests.support.secret_watch import MARK
from tests.support.waiting import wait_until_sync


def test_up_with_a_fleet_is_ready_when_it_says_so(tmp_path: Path) -> None:
    """All hosts have reported, its curl line works, another terminal finds its store, and Ctrl-C ends all of it."""
    arguments = ("--fleet", "5", "--workers", "2")
    with up(*arguments, environment={"REDSCHED_HOST_NAME": "here"}, command=(*COMMAND, "up")) as started:
        processes = descendants(started.process.pid)
        ready = ask(f"{started.api}/readyz")
        assert (ready["hosts"], ready["workers"]) == (6, 2)
        assert "selections" in curl(started.said["try"])
        hosts = run("host", "list", "--json", "--url", started.store).check().json()["hosts"]
        assert {one["name"] for one in hosts} == {"here", *(f"sim-0000{number}" for number in range(1, 6))}
        assert started.said["look"] == f"redis-cli -s {started.store.removeprefix('unix://')}"
        assert "--data" in started.said["store"]
        ended = started.end(signal.SIGINT)
    assert (ended.exit_code, ended.errors) == (0, "")
    check_nothing_left(started, processes)


@pytest.mark.parametrize(("arguments", "has_auth"), [(("--fleet", "2"), True), ((), False)])
def test_what_up_prints_fits_80_columns(tmp_path: Path, arguments: tuple[str, ...], has_auth: bool) -> None:
    """With authentication too, which adds a text and an option to the line to try. A long path is not broken."""
    environment = {"REDSCHED_AUTH": _tokens(tmp_path)} if has_auth else {}
    with up("--no-agent", *arguments, environment=environment) as started:
        lines = [line.rstrip("\n") for line in started.process.lines]
        assert [line for line in lines if len(line) > 80 and str(tmp_path) not in line] == []
        assert started.end(signal.SIGINT).exit_code == 0


def test_the_line_to_try_is_one_that_a_decision_accepts(tmp_path: Path) -> None:
    """Here the room is in a pool."""
    file = tmp_path / "fleet.yaml"
    pool = "{p0: {inventories: {VCPU: {total: 4}}}}"
    file.write_text(f"hosts:\n  - {{name: h1, inventories: {{DISK_GB: {{total: 4, reserved: 4}}}}, pools: {pool}}}\n")
    with up("--no-agent", "--fleet", str(file)) as started:
        assert "selections" in curl(started.said["try"])
        run("select", "VCPU=3", "--url", started.store).check()
        assert started.end(signal.SIGINT).exit_code == 0


def test_without_room_up_lists_the_hosts(redsched: Redsched, store: str) -> None:
    """There is some, of which an aggregate keeps all requests without a project away."""
    members = ("--host", "h1", "--host", "h2")
    redsched("aggregate", "set", "a", "--metadata", "filter_tenant_id=web", *members).check()
    with up("--no-agent", environment={"REDSCHED_REDIS_URL": store}) as started:
        assert started.said["try"] == f"curl -X GET {started.api}/v1/hosts"
        assert started.end(signal.SIGINT).exit_code == 0


def test_up_alone_has_a_curl_that_works_too() -> None:
    """Without any host the line reports one; SIGTERM ends it as properly as Ctrl-C."""
    with up("--no-agent") as started:
        processes = descendants(started.process.pid)
        assert ask(f"{started.api}/v1/hosts") == {"hosts": [], "next": None}
        assert curl(started.said["try"])["outcome"] == "OK"
        ended = started.end(signal.SIGTERM)
    assert (ended.exit_code, ended.errors) == (0, "")
    check_nothing_left(started, processes)


@pytest.mark.parametrize("arguments", [(), ("--fleet", "2")])
@pytest.mark.shows_secret  # `token new` prints it
def test_the_curl_of_an_up_with_authentication_sends_a_token(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """From a file: other users of the machine see command lines. `up` does not know the token."""
    file = str(tmp_path / "tokens.yaml")
    token = run("token", "new", "me", "--role", "operator", "--file", file).output.strip()
    with up("--no-agent", *arguments, environment={"REDSCHED_AUTH": file}) as started:
        assert file in started.said["auth"]
        assert "-H @me.header" in started.said["try"]
        answer = curl(started.said["try"], token)
        assert "selections" in answer if arguments else answer["outcome"] == "OK"
        ended = started.end(signal.SIGINT)
    assert (ended.exit_code, ended.errors) == (0, "")


@pytest.mark.parametrize("command", [("up", "--no-agent"), ("api", "--url", "redis://127.0.0.1:1")])
def test_a_token_file_that_cannot_be_used_is_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    """It is checked first: no store was started, or asked."""
    file = tmp_path / "tokens.yaml"
    environment = {"REDSCHED_AUTH": str(file)}
    run(*command, "--port", "0", environment=environment).check_failed(2, str(file), "cannot be read")
    file.write_text("tokens: []")
    file.chmod(0o644)
    run(*command, "--port", "0", environment=environment).check_failed(2, str(file), "chmod 600")


def test_nothing_survives_an_up_that_is_killed() -> None:
    with up("--fleet", "2") as started:
        processes = descendants(started.process.pid)
        assert len(processes) >= 4  # a worker, the agent, the fleet, the store
        started.end(signal.SIGKILL)
    wait_until_sync(lambda: not any(map(runs, processes)), what=f"{processes} have ended")


def test_data_is_kept_from_one_up_to_the_next(tmp_path: Path) -> None:
    for known in (0, 1):
        with up("--no-agent", "--data", str(tmp_path / "data")) as started:
            assert len(ask(f"{started.api}/v1/hosts")["hosts"]) == known  # type: ignore[arg-type]
            if not known:
                curl(started.said["try"])
            assert str(tmp_path / "data") in started.said["store"]
            assert started.end(signal.SIGINT).exit_code == 0


def test_a_fleet_file_is_played(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("hosts:\n  - {name: 'gpu{n}', repeat: 3, inventories: {CUSTOM_GPU: {total: 4, step_size: 2}}}\n")
    with up("--no-agent", "--fleet", str(file)) as started:
        assert "CUSTOM_GPU" in started.said["try"]
        assert "selections" in curl(started.said["try"])
        assert started.end(signal.SIGINT).exit_code == 0


def test_up_starts_a_dead_worker_again() -> None:
    with up("--no-agent") as started:
        [worker] = [pid for pid in descendants(started.process.pid) if _name(pid) == "redsched-api0"]
        os.kill(worker, signal.SIGKILL)
        wait_until_sync(lambda: not runs(worker))
        assert ask(f"{started.api}/healthz") == {"status": "ok"}
        ended = started.end(signal.SIGINT)
    assert ended.exit_code == 0
    assert "Traceback" not in ended.errors


def test_a_dead_agent_is_reported_with_the_line_that_starts_it_again() -> None:
    """The line works: the new process goes on with the journal of the dead one."""
    with up("--no-agent", "--fleet", "2") as started:
        [agent] = [pid for pid in descendants(started.process.pid) if _name(pid) == "redsched-fleet"]
        os.kill(agent, signal.SIGKILL)
        wait_until_sync(lambda: any("redsched agent" in line for line in started.process.error_lines))
        said = started.process.error_lines
        assert said[0] == "redsched: the fleet exited with code -9; the other processes continue."
        assert max(map(len, said[:3])) <= 80
        journal, _, *command = said[3].split()
        assert command == ["agent", "--fleet", "2"]
        environment = {"REDSCHED_REDIS_URL": started.store, "REDSCHED_JOURNAL": journal.partition("=")[2]}
        with running(*command, environment=environment) as again:
            wait_until_sync(lambda: any("every host is open" in line for line in again.error_lines))
        assert started.end(signal.SIGINT).exit_code == 0


def test_an_embedded_store_that_ends_ends_up() -> None:
    with up("--no-agent") as started:
        processes = descendants(started.process.pid)
        [store] = [pid for pid in processes if b"-server" in _command(pid).split(b"\0")[0]]
        os.kill(store, signal.SIGKILL)
        ended = started.process.wait()
    assert ended.exit_code == 5, ended
    assert "the embedded store has exited" in ended.errors.splitlines()[-1]
    wait_until_sync(lambda: not any(map(runs, processes)), what=f"{processes} have ended")


def test_a_port_in_use_leaves_nothing_running() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        run("up", "--port", port).check_failed(2, port, "--port")


def test_a_broken_fleet_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("hosts: [{name: h1}]")
    run("up", "--port", "0", "--fleet", str(file)).check_failed(2, "fleet.yaml", "inventories")
    run("up", "--port", "0", "--fleet", str(tmp_path / "nix.yaml")).check_failed(2, "nix.yaml")
    run("up", "--port", "0", "--fleet", "0").check_failed(2, "0")


def test_data_beside_a_given_store_is_refused(store: str, tmp_path: Path) -> None:
    environment = {"REDSCHED_REDIS_URL": store}
    run("up", "--port", "0", "--data", str(tmp_path), environment=environment).check_failed(2, "--data")


def test_no_process_shows_the_password_of_the_store(fresh_server: PrivateServer) -> None:
    """Neither in the list of processes, nor in what `up` prints."""
    password = f"{MARK}up"
    with fresh_server.client() as client:
        client.execute_command("ACL", "SETUSER", "redsched", "on", f">{password}", "~*", "&*", "+@all")
    url = fresh_server.url.replace("unix://", f"unix://redsched:{password}@")
    with up("--fleet", "2", environment={"REDSCHED_REDIS_URL": url}) as started:
        processes = [started.process.pid, *descendants(started.process.pid)]
        assert len(processes) >= 4  # a worker, the agent, the fleet
        assert not [pid for pid in processes if MARK.encode() in _command(pid)]
        ended = started.end(signal.SIGINT)
    assert MARK not in ended.output + ended.errors


@pytest.mark.parametrize("command", [("api", "--port", "0"), ("agent", "--fleet", "2")])
def test_api_and_agent_end_with_ctrl_c(store: str, tmp_path: Path, command: tuple[str, ...]) -> None:
    """Before that, `api` responds, and `agent` has reported its hosts."""
    environment = {"REDSCHED_REDIS_URL": store, "REDSCHED_JOURNAL": str(tmp_path / "journal")}
    with running(*COMMAND, *command, environment=environment, forked=False) as process:
        if command[0] == "api":
            wait_until_sync(lambda: bool(process.lines), timeout=30)
            url = process.lines[0].split()[4].rstrip(",")
            assert ask(f"{url}/healthz") == {"status": "ok"}
        else:
            wait_until_sync(lambda: "sim-00002" in run("host", "list", "--url", store).output, timeout=30)
        processes = descendants(process.pid)
        ended = process.end(signal.SIGINT)
    assert ended.exit_code == 0, ended
    assert "Traceback" not in ended.errors
    wait_until_sync(lambda: not any(map(runs, processes)))


def _tokens(tmp_path: Path) -> str:
    """Write a token file without tokens, and return its path."""
    file = tmp_path / "tokens.yaml"
    file.write_text("tokens: []\n")
    file.chmod(0o600)
    return str(file)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def _name(pid: int) -> str:
    """Return the name that `ps` and `top` show for a process."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        return ""
