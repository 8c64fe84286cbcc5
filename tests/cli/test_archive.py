"""`redsched export` and `import`, used from the command line."""

from pathlib import Path

import pytest
import redis

from tests.cli.conftest import Redsched


@pytest.fixture(autouse=True)
def _slow_machine(redsched: Redsched, store: str) -> None:
    """Allow long pauses between two commands, which on a slow machine would count as a clock jump."""
    with redis.Redis.from_url(store, protocol=2) as client:
        client.hset("rs:{c1}:meta", mapping={"jump_s": "3600", "now_ms": int(client.time()[0]) * 1000})


def test_a_cell_is_exported_and_comes_back_after_a_wipe(redsched: Redsched, store: str, tmp_path: Path) -> None:
    """An empty store takes the whole archive; one that is not empty takes only the declared objects."""
    redsched("server-group", "set", "web", "--policy", "anti-affinity").check()
    redsched("select", "VCPU=1", "--host", "h1", "--id", "mine", "--server-group", "web", "--owner", "ann").check()
    redsched("host", "drain", "h2").check()
    file = tmp_path / "cell.jsonl"
    redsched("export", "--output", str(file)).check()
    assert redsched("export").check().output.splitlines()[1:] == file.read_text().splitlines()[1:]
    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    found = redsched("import", str(file))
    assert found.exit_code == 0, found  # stderr may have a log line about the new epoch
    assert (
        found.output
        == "cell c1: 0 aggregates, 1 server group, 0 pools, 0 quotas, 2 statuses, 2 hosts, 1 claim, 1 request\n"
    )
    shown = redsched("claim", "show", "mine", "--json").check().json()
    assert (shown["host"], shown["owner"]) == ("h1", "ann")
    assert redsched("host", "show", "h2", "--json").check().json()["status"] == "draining"
    redsched("import", str(file)).check_failed(3, "not empty", "--declared")
    again = redsched("import", str(file), "--declared", "--json").check().json()
    assert (again["imported"]["server_groups"], again["imported"]["statuses"], again["notes"]) == (1, 2, [])


def test_a_bad_line_is_named_and_nothing_written(redsched: Redsched, store: str, tmp_path: Path) -> None:
    file = tmp_path / "cell.jsonl"
    redsched("export", "--output", str(file)).check()
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:-1], lines[-1].replace("VCPU", "vcpu")]))
    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    redsched("import", str(file)).check_failed(2, f"line {len(lines)}", "vcpu", "nothing was written")
    with redis.Redis.from_url(store, protocol=2) as client:
        assert list(client.scan_iter()) == []
    redsched("export").check_failed(5, "cell c1 does not exist", "redsched init")
    redsched("init").check()
    redsched("import", str(tmp_path / "none")).check_failed(2, "none")
    redsched("export", "--output", str(tmp_path / "no" / "where")).check_failed(2, "cannot be written")
    redsched("export", "--cell", "c9").check_failed(4, "c9")
