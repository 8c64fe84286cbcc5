"""Count the instructions that the server executes for one call of claim.lua. Needs valgrind.

    python -m benchmarks.script_cost [--server /usr/bin/redis-server] [--hosts 200] [--calls 640] [--json]

Unlike a time, the count does not depend on the load: two commits can be compared to a thousandth. The first row is an
empty script that is called with the same keys and arguments: the server's cost of reading the call. Calls are those of
`benchmarks.throughput`: one member, three classes, as many candidates as a scheduler names.
"""

import argparse
import asyncio
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import redis

from benchmarks import raw_claims
from benchmarks.claim_work import report_fleet
from redsched.model import Quota
from redsched.model.validation import MAX_AMOUNT
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.client.scripts import load_all
from redsched.store.codec.results import Clock
from redsched.store.embedded.server import PrivateServer, pick_server

BATCH = 32
LIMITED = "limited"
EMPTY = "#!lua\nreturn {'OK'}"
SETTINGS = Settings(log_level="warning")


class CountedServer:
    """A private server under callgrind, which writes its counts to `folder` on request."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._counts = folder / "counts"
        launcher = folder / "server"
        launcher.write_text(
            f'#!/bin/sh\ncase "$1" in --version) exec {binary} "$@" ;; esac\n'
            f'exec valgrind --quiet --tool=callgrind --callgrind-out-file={self._counts} {binary} "$@"\n'
        )
        launcher.chmod(0o700)
        self.server = PrivateServer.start(launcher)

    def instructions(self) -> int:
        """Return how many were executed since the previous call of this function."""
        subprocess.run(
            ["callgrind_control", "--dump", str(self.server.pid)], check=True, capture_output=True, timeout=60
        )
        newest = max(self._counts.parent.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
        [total] = [line for line in newest.read_text().splitlines() if line.startswith("totals: ")]
        return int(total.split()[1])


async def prepare(url: str, hosts: int) -> tuple[list[str], Clock]:
    """Report a fleet and declare a quota that is never reached."""
    async with Scheduler.connect(url, SETTINGS) as scheduler:
        await scheduler.init()
        await report_fleet(scheduler, hosts)
        await scheduler.quotas.put(Quota(LIMITED, {"VCPU": MAX_AMOUNT, "claims": MAX_AMOUNT}))
        [cell] = scheduler._cells
        return await cell.store.hosts.names(), await cell.store.tick()


def measure(counted: CountedServer, hosts: Sequence[str], clock: Clock, calls: int) -> Iterator[tuple[str, float]]:
    """Return rows of a name and the instructions of one call."""
    claim = load_all()["claim"].text
    with redis.Redis(unix_socket_path=str(counted.server.socket), protocol=2, decode_responses=True) as client:
        connection = client.connection_pool.get_connection()
        for name, script, project in (
            ("an empty script, called alike", EMPTY, ""),
            ("claim.lua", claim, ""),
            ("claim.lua, a quota", claim, LIMITED),
        ):
            sha = client.script_load(script)
            commands = asyncio.run(raw_claims.build(hosts, clock, calls, project))
            counted.instructions()
            for first in range(0, calls, BATCH):
                _send(connection, [(one[0], sha, *one[2:]) for one in commands[first : first + BATCH]])
            yield name, counted.instructions() / calls


def _send(connection: Any, commands: Sequence[tuple[Any, ...]]) -> None:
    packed = connection.pack_commands(commands)
    if set(raw_claims.exchange(connection, packed, len(commands))) != {"OK"}:
        raw_claims.refused()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--server", type=Path, default=None, help="server binary; without: the one `up` would start")
    parser.add_argument("--hosts", type=int, default=200, help="size of the fleet")
    parser.add_argument("--calls", type=int, default=640, help="calls of each row")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counted = CountedServer(given.server or pick_server().path, Path(folder))
        with counted.server as server:
            hosts, clock = asyncio.run(prepare(server.url, given.hosts))
            rows = dict(measure(counted, hosts, clock, given.calls))
    if given.json:
        print(json.dumps(rows))
        return
    print(f"{server.kind} {server.version}; thousand instructions of the server for each call")
    for name, count in rows.items():
        print(f"{name:<32} {count / 1000:>8.1f}")


if __name__ == "__main__":
    main()
