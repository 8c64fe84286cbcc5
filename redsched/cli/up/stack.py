"""The processes of `redsched up`: a store, the API's workers, the agent of this machine, a fleet.

The order matters. Input that can be wrong (fleet file, port) is checked first, so that a mistake leaves nothing behind;
the store is started before the processes that need it and stopped after them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from redsched.agent.collectors.fleet import fleet as read_fleet
from redsched.auth.authenticator import Authenticator
from redsched.cli.main import run
from redsched.cli.verbs.store import check_answers, declare
from redsched.errors import InvalidRequest, StoreUnavailable
from redsched.serve import processes
from redsched.serve.processes import ChildProcess
from redsched.serve.supervisor import Workers
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer

FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class StackOptions:
    """The options of the command line. `fleet`: a file or a number, empty for none.

    `exposure`: the environment of the workers that decides who may reach the API.
    """

    host: str
    port: int
    workers: int
    agent: bool
    fleet: str
    data: Path | None
    insecure: bool = False
    exposure: Mapping[str, str] = field(default_factory=dict)


class LocalStack:
    """All processes; a context manager that stops them, the store last."""

    def __init__(self, settings: Settings, options: StackOptions) -> None:
        """Check the options and bind the port. Raises InvalidRequest."""
        if options.data and settings.redis_url:
            raise InvalidRequest(
                "--data is for the embedded store, but REDSCHED_REDIS_URL names another store: use one of them"
            )
        Authenticator.of(settings)  # only to check the token file
        self.settings, self.options = settings, options
        self.simulated = len(read_fleet(options.fleet)) if options.fleet else 0
        self.workers = Workers(
            options.host,
            options.port,
            options.workers,
            hosts=self.simulated + options.agent,
            settings=settings,
            insecure=options.insecure,
        )
        self.is_open = not (settings.auth or self.workers.url.startswith("https:"))
        """Whether this process can send requests to the API: it has neither a token nor a client's certificate."""
        self.private: PrivateServer | None = None
        self._agents: dict[str, ChildProcess] = {}
        self.lines: dict[str, str] = {}
        """By agent, the line that starts it again in a shell that knows the store."""

    @property
    def url(self) -> str:
        """The store's URL."""
        return self.private.url if self.private else self.settings.redis_url

    def start(self) -> None:
        """Start all processes, without waiting until they are ready. Raises StoreUnavailable."""
        if not self.settings.redis_url:
            self.private = PrivateServer.start(data_dir=self.options.data)
            declare(self.settings.model_copy(update={"redis_url": self.url}))
        else:
            check_answers(self.settings)
        self.workers.start({**self._environment(), **self.options.exposure})
        if self.options.agent:
            self._start_agent("the agent of this machine", "machine")
        if self.options.fleet:
            self._start_agent("the fleet", FLEET, "--fleet", self.options.fleet)

    def look(self) -> None:
        """Restart dead workers. Raises StoreUnavailable when the embedded store has died. Call it periodically."""
        if self.private and not self.private.running:
            raise StoreUnavailable("the embedded store has exited: start `redsched up` again")
        self.workers.revive()

    def gone_agents(self) -> dict[str, int]:
        """Return the agents that have exited since the last call, with their exit codes."""
        codes = {name: child.exit_code for name, child in self._agents.items()}
        gone = {name: code for name, code in codes.items() if code is not None}
        self._agents = {name: child for name, child in self._agents.items() if name not in gone}
        return gone

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processes.stop(list(self._agents.values()))
        self.workers.stop()
        if self.private:
            self.private.stop()

    def _environment(self) -> dict[str, str]:
        quiet = {} if "REDSCHED_LOG_LEVEL" in os.environ else {"REDSCHED_LOG_LEVEL": "warning"}
        return {"REDSCHED_REDIS_URL": self.url, **quiet}

    def _start_agent(self, name: str, journal: str, *arguments: str) -> None:
        path = self._journal(journal)
        environment = {**self._environment(), "REDSCHED_JOURNAL": path}
        self.lines[name] = " ".join(([f"REDSCHED_JOURNAL={path}"] if path else []) + ["redsched agent", *arguments])
        main = partial(self._run_agent, arguments)
        title = "redsched-fleet" if journal == FLEET else "redsched-agent"
        processes.start(title, main, environment, partial(self._agents.__setitem__, name))

    def _run_agent(self, arguments: tuple[str, ...]) -> int:
        self.workers.close_sockets()
        return run(["agent", *arguments])

    def _journal(self, name: str) -> str:
        """Return the journal's path: one file for each agent; '' (the agent's default) if the store is not embedded."""
        if self.settings.journal:
            return f"{self.settings.journal}{'-fleet' if name == FLEET else ''}"
        if not self.private:
            return ""
        # The journal must disappear with the store's state, or it would restore claims of the old store in the new one.
        return str((self.options.data or self.workers.folder) / f"{name}.sqlite")
