"""What `redsched up` runs: a store, the API's workers, the agent of this machine, a fleet.

The order matters. What can be wrong is looked at first (fleet file, port), so that a mistake leaves nothing behind; the
store is started before those who need it and ended after them.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from redsched.agent.fleet import fleet as read_fleet
from redsched.api import children
from redsched.api.serve import Workers
from redsched.cli.with_store import declare
from redsched.errors import InvalidRequest, StoreUnavailable
from redsched.settings import Settings
from redsched.store.server import PrivateServer


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line. `fleet`: a file or a number, empty for none."""

    host: str
    port: int
    workers: int
    agent: bool
    fleet: str
    data: Path | None


class Everything:
    """All of it; a context manager that ends it, the store last."""

    def __init__(self, settings: Settings, wanted: Wanted) -> None:
        """Look at what can be wrong, and take the port. Raises InvalidRequest."""
        if wanted.data and settings.redis_url:
            raise InvalidRequest(
                "--data keeps the embedded store, but REDSCHED_REDIS_URL gives another: use one of them"
            )
        self._settings, self.wanted = settings, wanted
        self.simulated = len(read_fleet(wanted.fleet)) if wanted.fleet else 0
        self.workers = Workers(wanted.host, wanted.port, wanted.workers, hosts=self.simulated + wanted.agent)
        self.private: PrivateServer | None = None
        self._agents: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The store's URL."""
        return self.private.url if self.private else self._settings.redis_url

    def start(self) -> None:
        """Start all of it; it may not be ready yet. Raises StoreUnavailable."""
        if not self._settings.redis_url:
            self.private = PrivateServer.start(data_dir=self.wanted.data)
            declare(self._settings.model_copy(update={"redis_url": self.url}))
        self.workers.start({"REDSCHED_REDIS_URL": self.url})
        if self.wanted.agent:
            self._start_agent("the agent of this machine")
        if self.wanted.fleet:
            self._start_agent("the fleet", "--fleet", self.wanted.fleet)

    def look(self) -> None:
        """Start dead workers anew. Raises StoreUnavailable when the embedded store is gone. Call it now and then."""
        if self.private and not self.private.running:
            raise StoreUnavailable("the embedded store has ended by itself: start `redsched up` again")
        self.workers.revive()

    def gone_agents(self) -> list[str]:
        """Agents that have ended since the last look, each in words."""
        gone = {name: child for name, child in self._agents.items() if child.poll() is not None}
        self._agents = {name: child for name, child in self._agents.items() if name not in gone}
        return [f"{name} has ended with exit code {child.returncode}" for name, child in gone.items()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        children.stop(list(self._agents.values()))
        self.workers.stop()
        if self.private:
            self.private.stop()

    def _start_agent(self, name: str, *arguments: str) -> None:
        environment = {"REDSCHED_REDIS_URL": self.url}
        if self.private and not self._settings.journal:
            # Where the store's state ends, so must the journal's: it would bring claims of the old store to the new.
            environment["REDSCHED_JOURNAL"] = str((self.wanted.data or self.workers.folder) / "journal.sqlite")
        self._agents[name] = children.start("redsched.cli", ["agent", *arguments], environment)
