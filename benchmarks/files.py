"""How many files of redsched run for a selection over REST and for `redsched claim list`, and how many a process loads.

    python -m benchmarks.files [--names] [--json]

A file runs if one of its functions does, other than while modules are imported. The API's worker has answered such
requests before. Of several alike, the files count that all of them run: what its scheduler does meanwhile does not.
`--names` lists the files that run. It measures the redsched that stands beside this folder: copy the file into
`benchmarks/` of an earlier release to measure that.
"""

import argparse
import json
import multiprocessing
import os
import socket
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

# Processes that are measured import this module first: all of redsched is imported in functions.

PACKAGE = f"{Path(__file__).parents[1] / 'redsched'}{os.sep}"
ROUNDS = 5
TIMEOUT_S = 120.0
COMMAND = ("claim", "list")


@dataclass(frozen=True, slots=True)
class Row:
    """The files that run for one thing in one process, and the number of those that it has loaded."""

    what: str
    run: list[str]
    loaded: int


class Tracer:
    """Collects in `files` those of redsched whose functions run in the thread that made it."""

    def __init__(self) -> None:
        self.files = set[str]()
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and file not in self.files and not _is_import(frame):
            self.files.add(file)


def _is_import(frame: FrameType | None) -> bool:
    """Return whether a function runs because a module of redsched is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back
    return False


def loaded() -> int:
    """Return the number of files of redsched that this process has loaded."""
    return sum((getattr(one, "__file__", None) or "").startswith(PACKAGE) for one in list(sys.modules.values()))


def command(pipe: Connection) -> None:
    """Run the command in this process, and send the files. Raises SystemExit if it fails."""
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing):
        tracer = Tracer()
        from redsched.cli.main import run

        if run(COMMAND):
            raise SystemExit(f"`redsched {' '.join(COMMAND)}` failed")
    sys.setprofile(None)
    pipe.send((tracer.files, loaded()))


def worker(listener: socket.socket, pipe: Connection) -> None:
    """Serve the API in this process, and answer each message with the files since the one before."""
    from redsched.api.app import create_app
    from redsched.serve.registry import WorkerRegistry
    from redsched.serve.worker import serve

    tracer = Tracer()

    def answer() -> None:
        while True:
            pipe.recv()
            files, tracer.files = tracer.files, set()
            pipe.send((files, loaded()))

    threading.Thread(target=answer, daemon=True).start()
    registry = WorkerRegistry()
    with TemporaryDirectory() as metrics:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
        if serve(create_app, registry, listener):
            raise SystemExit(registry.failure())


@contextmanager
def started(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Run a function in a process of its own, which ends with the block, and yield the pipe to it."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=work, args=(*arguments, theirs))
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        process.terminate()
        process.join(TIMEOUT_S)


def received(pipe: Connection) -> tuple[set[str], int]:
    """Return the files that a process sends. Raises SystemExit if it sends none in time."""
    if not pipe.poll(TIMEOUT_S):
        raise SystemExit(f"a process did not send its files within {TIMEOUT_S:g} s")
    try:
        found: tuple[set[str], int] = pipe.recv()
    except EOFError:
        raise SystemExit("a process ended without its files") from None
    return found


def common(what: str, all_found: list[tuple[set[str], int]]) -> Row:
    """Return the row of what several processes or requests have run."""
    run = set.intersection(*(files for files, _ in all_found))
    return Row(what, sorted(file.removeprefix(PACKAGE) for file in run), all_found[-1][1])


def select(url: str, vcpus: int) -> None:
    """Claim so many VCPUs. Raises urllib's errors."""
    body = json.dumps({"resources": {"VCPU": vcpus, "MEMORY_MB": 64}}).encode()
    asked = urllib.request.Request(f"{url}/v1/selections", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=TIMEOUT_S):
        pass  # anything but 2xx raises


def over_rest(listener: socket.socket) -> Iterator[Row]:
    """Yield the rows of what a worker serves."""
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with started(worker, listener) as pipe:
        listener.close()  # the worker has it: if that ends, callers are refused

        def since() -> tuple[set[str], int]:
            pipe.send(None)
            return received(pipe)

        select(url, 1)
        since()
        found = list[tuple[set[str], int]]()
        for number in range(ROUNDS):
            select(url, 2 + number)
            found.append(since())
        yield common("a selection of a new shape over REST: the worker", found)

        del os.environ["REDSCHED_REDIS_URL"]
        os.environ["REDSCHED_API"] = url
        commands, served = list[tuple[set[str], int]](), list[tuple[set[str], int]]()
        since()
        for _ in range(ROUNDS):
            with started(command) as ran:
                commands.append(received(ran))
            served.append(since())
        yield common("claim list over REST: the command", commands)
        yield common("claim list over REST: the worker", served)


def over_the_store() -> Row:
    """Return the row of the command that reads the store itself."""
    with started(command) as ran:
        return common("claim list over the store", [received(ran)])


async def report(url: str) -> None:
    """Report hosts."""
    from redsched.model import HostReport, Inventory
    from redsched.scheduler import Scheduler
    from redsched.settings import Settings

    slots = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(65536)}
    async with Scheduler.connect(url, Settings()) as scheduler:
        await scheduler.init()
        for number in range(10):
            await scheduler.hosts.report(HostReport(f"h{number}", slots, lease_s=3600))


def measure() -> list[Row]:
    """Return all rows, of a private store."""
    import uvloop

    from redsched.store.embedded.server import PrivateServer

    with PrivateServer.start() as server, socket.create_server(("127.0.0.1", 0)) as listener:
        uvloop.run(report(server.url))
        os.environ["REDSCHED_REDIS_URL"] = server.url
        return [over_the_store(), *over_rest(listener)]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="list the files that run")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args()
    rows = measure()
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{'':<50} {'run':>5} {'loaded':>7}")
    for row in rows:
        print(f"{row.what:<50} {len(row.run):>5} {row.loaded:>7}", *(row.run if given.names else ()), sep="\n  ")


if __name__ == "__main__":
    main()
