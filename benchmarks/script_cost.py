"""Count the instructions that the server executes for one call of claim.lua. Needs valgrind.

    python -m benchmarks.script_cost [--server /usr/bin/redis-server] [--hosts 200] [--calls 640] [--json]

Unlike a time, the count does not depend on the load: two commits can be compared to a hundredth. Calls are those of
`benchmarks.throughput` with a third class: one member, three classes, as many candidates as a scheduler names. The
first rows are limits: an empty script that is called with the same keys and arguments, and the commands of the claim
without anything else. The parts are counted by scripts that end after each of them.
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
from benchmarks.claim_work import AMOUNTS, HELD_S, report_fleet
from redsched.model import Quota, Request
from redsched.model.validation import MAX_AMOUNT
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.client.scripts import load_all
from redsched.store.codec.replies import Clock
from redsched.store.embedded.server import PrivateServer, pick_server

BATCH, MEMBERS = 32, 32
LIMITED = "limited"
EMPTY = "#!lua\nreturn {'OK'}"
BARE = (Path(__file__).parent / "bare_claim.lua").read_text()
SETTINGS = Settings(log_level="warning", reply_timeout_s=60)
PARTS = (
    ("create the functions", "local cell = fence("),
    ("the fence", "local call = parse_call("),
    ("parse the call", "return known_outcome("),
    ("read ids and the host, check", "  -- Every check has passed."),
)
"""The parts of claim.lua but the last, with the beginning of the line that follows each."""
REQUESTS = [Request(amounts | {"DISK_GB": 10, "MEMORY_MB": 1024}, lease_s=HELD_S) for amounts in AMOUNTS]


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
        [cell] = scheduler.cells
        return await cell.store.hosts.names(), await cell.store.tick()


def until(claim: str, line: str) -> str:
    """Return the script without what follows the beginning of a line, which occurs once."""
    before, found, after = claim.rpartition(f"\n{line}")
    assert found, line
    return f"{before}\ndo return {{'OK'}} end{found}{after}"


def measure(counted: CountedServer, hosts: Sequence[str], clock: Clock, calls: int) -> Iterator[tuple[str, float]]:
    """Return rows of a name and the instructions of one call, or of one member of calls with many."""
    claim = load_all()["claim"].text
    with redis.Redis(unix_socket_path=str(counted.server.socket), protocol=2, decode_responses=True) as client:
        row = Row(counted, client, hosts, clock, calls)
        row.count(claim)  # so that every host has claims, and an inbox
        empty = row.count(EMPTY)
        yield "an empty script, called alike", empty
        yield "the commands of a claim alone", row.count(BARE)
        whole = row.count(claim)
        yield "claim.lua", whole
        yield "  read the call", empty
        before = empty
        for name, line in PARTS:
            reached = row.count(until(claim, line))
            yield f"  {name}", reached - before
            before = reached
        yield "  write and reply", whole - before
        yield "claim.lua, a quota", row.count(claim, project=LIMITED)
        yield f"claim.lua, {MEMBERS} members, of each", row.count(claim, members=MEMBERS) / MEMBERS


class Row:
    """Counts the calls of one script after another."""

    def __init__(
        self, counted: CountedServer, client: redis.Redis, hosts: Sequence[str], clock: Clock, calls: int
    ) -> None:
        self._counted, self._client, self._hosts, self._clock, self._calls = counted, client, hosts, clock, calls
        self._connection: Any = client.connection_pool.get_connection()
        self._rows = 0

    def count(self, script: str, project: str = "", members: int = 1) -> float:
        """Return the instructions of one call."""
        self._rows += 1
        sha, calls = self._client.script_load(script), max(BATCH, self._calls // members)
        build = raw_claims.build(
            self._hosts,
            self._clock,
            calls,
            project,
            members=members,
            name=f"row{self._rows}",
            made=REQUESTS,
        )
        commands = [(one[0], sha, *one[2:]) for one in asyncio.run(build)]
        self._counted.instructions()
        for first in range(0, calls, BATCH):
            self._send(commands[first : first + BATCH])
        return self._counted.instructions() / calls

    def _send(self, commands: Sequence[tuple[Any, ...]]) -> None:
        packed = self._connection.pack_commands(commands)
        if set(raw_claims.exchange(self._connection, packed, len(commands))) != {"OK"}:
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
