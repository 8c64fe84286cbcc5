"""A terminal of 80 columns, and the stacks of `redsched up` on which pages are played."""

import asyncio
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path

import redis

from redsched.store.embedded.binary import pick_server
from redsched.store.store import Store
from tests.cli import in_process
from tests.cli.parts import SERVES, Up, run, up
from tests.docs.pages import ROOT
from tests.support.builders.cells import raw_client

COLUMNS = 80
DONE = re.compile(r"-- done (\d+) --\n$")
PLAIN = re.compile(r"redsched [^|&;<>$()`\n\\]*")
"""A command without shell syntax."""
CHECKOUT = re.compile(r"(?<![\w./-])(?:\$PWD/)?(scripts|deploy)/")
"""What of the checkout a page names: it is played in an empty folder."""
UP = re.compile(r"((?:\w+=\S+ )*)(scripts/|redsched )up\b(.*)")
"""The command that starts a stack."""
RELEASE_S, RELEASE_PAUSE_S = 60.0, 0.1
"""How long a stack's hosts have for ending the claims of a page."""
LAPSE = re.compile(r"lapse (\S+)")
"""A command of set-ups: it ends the lease of a host. A short lease could also end while its agent runs."""
URL = "REDSCHED_REDIS_URL"
REST = "localhost:8080"
"""The address of the API in pages."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The exit code and output of a command that has ended."""

    exit_code: int
    shown: str


class Terminal:
    """A bash in its own folder, on a terminal of 80 columns, with the store and API of a stack."""

    def __init__(self, folder: Path) -> None:
        self._api = REST
        self._variables = folder / ".bin" / "variables"
        ours, its = pty.openpty()
        modes = termios.tcgetattr(its)
        modes[1] &= ~termios.ONLCR
        termios.tcsetattr(its, termios.TCSANOW, modes)
        ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self._ours, self._name = ours, os.ttyname(its)
        self._bash = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=its,
            stderr=its,
            text=True,
            cwd=folder,
            env=_environment(folder),
        )
        os.close(its)
        self._ask("trap 'FAILED=$?' ERR")

    def use(self, stack: Up) -> None:
        """Make the following commands use a stack."""
        self._api = stack.api.removeprefix("http://")
        self._ask(f"export {URL}={stack.store}")

    def run(self, command: str) -> Ran:
        """Run a command to its end. Plain commands of redsched run in this process, which saves their start."""
        if lapse := LAPSE.fullmatch(command):
            asyncio.run(_lapse(self.environment()[URL], lapse[1]))
            return Ran(0, "")
        command = CHECKOUT.sub(rf"{ROOT}/\1/", command.replace(REST, self._api))
        environment = self.environment() if PLAIN.fullmatch(command) else {}
        if environment and command.split()[1] not in SERVES and "PYTHONPATH" not in environment:
            arguments = shlex.split(command, comments=True)[1:]
            name = Path(self._name)
            exit_code = in_process.run(arguments, environment, name, name, Path(environment["PWD"]))
            return Ran(exit_code, self._ask("").shown)
        return self._ask(command)

    def environment(self) -> dict[str, str]:
        """Return the variables that bash has exported so far. Processes in the background may print meanwhile."""
        self._ask(f"env -0 > {shlex.quote(str(self._variables))}")
        return dict(one.split("=", 1) for one in self._variables.read_text().split("\0") if one)

    def exported(self) -> dict[str, str]:
        """Return the settings that the page has exported so far, without the store."""
        settings = {name: value for name, value in self.environment().items() if name.startswith("REDSCHED_")}
        return {name: value for name, value in settings.items() if name != URL and os.environ.get(name) != value}

    def end(self) -> None:
        """End bash, which must have no children any more."""
        self._bash.communicate()
        os.close(self._ours)

    def _ask(self, command: str) -> Ran:
        assert self._bash.stdin is not None
        self._bash.stdin.write(f'{{ FAILED=0\n{command}\n}} < /dev/null\necho "-- done $FAILED --"\n')
        self._bash.stdin.flush()
        shown = ""
        while not (done := DONE.search(shown)):
            shown += os.read(self._ours, 65_536).decode(errors="replace")
        return Ran(int(done[1]), shown[: done.start()])


def redis_cli() -> str | None:
    """Return the path of redis-cli, or of Valkey's, which is the same program; None if there is neither."""
    return shutil.which("redis-cli") or shutil.which("valkey-cli")


def _environment(folder: Path) -> Mapping[str, str]:
    """Return the environment of a user's shell: the checkout's commands, a store's server, and a separate home."""
    commands = folder / ".bin"
    commands.mkdir()
    if found := redis_cli():
        (commands / "redis-cli").write_text(f'#!/bin/sh\nexec {found} -s "${{REDSCHED_REDIS_URL#unix://}}" "$@"\n')
        (commands / "redis-cli").chmod(0o755)
    (commands / "store-server").symlink_to(pick_server().path)
    path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return {**kept, "HOME": str(folder), "XDG_STATE_HOME": str(folder / ".state"), "PATH": path, "TERM": "dumb"}


async def _lapse(url: str, host: str) -> None:
    """Let the lease of a host have ended three seconds ago."""
    async with Store.connect(url) as store, raw_client(url) as raw:
        cell = store.cell("c1")
        key = cell.keys.host(host)
        assert await raw.exists(key), f"lapse: there is no host {host}"
        while await raw.hget(key, "alive") != "0":  # a last heartbeat may still have been on its way
            ended_ms = (await cell.tick()).now_ms - 3000
            await raw.hset(key, "alive_until_ms", ended_ms)
            await raw.zadd(cell.keys.hosts, {host: ended_ms})
            await cell.hosts.mark_down([host])


@contextmanager
def terminal(folder: Path) -> Iterator[Terminal]:
    """Yield a terminal in a folder; afterwards end every process that was started there."""
    opened = Terminal(folder)
    try:
        yield opened
    finally:
        for pid in processes_in(folder):  # including bash; all of them hold its output open
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        opened.end()


def processes_in(folder: Path) -> list[int]:
    """Return the processes with this working directory."""
    found = list[int]()
    for one in Path("/proc").iterdir():
        with suppress(OSError):
            if one.name.isdecimal() and (one / "cwd").readlink() == folder:
                found.append(int(one.name))
    return found


@dataclass(frozen=True, slots=True)
class Stack:
    """A running `redsched up`, and the hosts that it started with."""

    up: Up
    hosts: frozenset[str]

    def show(self, *command: str) -> list[dict[str, str]]:
        """Return the items that a command lists."""
        answer = run(*command, "--json", "--url", self.up.store).check().json()
        return next(value for value in answer.values() if isinstance(value, list))

    def do(self, *command: str) -> None:
        run(*command, "--url", self.up.store).check()

    def tidy(self) -> None:
        """Release all claims, delete what was declared, remove hosts that came later, and enable the others.

        Ended claims and events are deleted as well, because pages use the same ids.
        """
        self._release_all()
        for noun in ("aggregate", "server-group", "shared-pool", "quota"):
            for thing in self.show(noun, "list"):
                self.do(
                    noun, "delete", thing.get("name") or thing["project"], *(["--force"] if noun != "quota" else [])
                )
        for host in self.show("host", "list"):
            if host["name"] not in self.hosts:
                self.do("host", "remove", "--force", "--yes", host["name"])
            elif host["status"] != "enabled":
                self.do("host", "enable", host["name"])
        with redis.Redis.from_url(self.up.store, protocol=2) as client:
            client.delete(*client.scan_iter("rs:{c1}:claim:*"), "rs:{c1}:events")

    def _release_all(self) -> None:
        """Release all claims, and wait for the hosts of the stack, whose journals would count them; by force at last.

        The hosts of a page have no agent any more.
        """
        since = time.monotonic()
        while claims := self.show("claim", "list"):
            is_late = time.monotonic() > since + RELEASE_S
            assert time.monotonic() < since + 2 * RELEASE_S, f"claims that nothing ends: {claims}"
            forced = [claim["claim_id"] for claim in claims if is_late or claim["host"] not in self.hosts]
            asked = [claim["claim_id"] for claim in claims if claim["claim_id"] not in forced]
            for ids, options in ((forced, ("--force", "--yes")), (asked, ())):
                if ids:
                    run("claim", "release", *options, *ids, "--url", self.up.store)
            time.sleep(RELEASE_PAUSE_S)


@dataclass(slots=True)
class Stacks:
    """Stacks by the command and settings that started them. Each serves many pages, and is tidied between them."""

    _folder: Path
    _open: ExitStack
    _running: dict[tuple[str, ...], Stack] = field(default_factory=dict)

    def of(self, command: str, folder: Path, settings: Mapping[str, str]) -> Up:
        """Return the tidied stack of `VARIABLE=value redsched up ...`, started in a folder if it does not run yet.

        `settings` are those that the page has exported before.
        """
        name = (command, *(f"{variable}={value}" for variable, value in sorted(settings.items())))
        if name in self._running:
            self._running[name].tidy()
        else:
            started = self._open.enter_context(self._up(command, folder, settings))
            names = run("host", "list", "--json", "--url", started.store).check().json()["hosts"]
            self._running[name] = Stack(started, frozenset(host["name"] for host in names))
        return self._running[name].up

    def _up(self, command: str, folder: Path, settings: Mapping[str, str]) -> AbstractContextManager[Up]:
        variables, _, arguments = UP.fullmatch(command).groups()  # type: ignore[union-attr]
        home = {"HOME": str(self._folder), "XDG_STATE_HOME": str(self._folder / f"state-{len(self._running)}")}
        there = [str(folder / word) if (folder / word).exists() else word for word in shlex.split(arguments)]
        return up(*there, environment={**home, **settings, **dict(word.split("=") for word in shlex.split(variables))})
