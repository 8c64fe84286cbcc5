"""Hooks, which start, stop and resize the work of a claim: their requests and their output.

A hook gets the verb, the placement as JSON, the claim's id and the token. It may run twice for one placement, so it
must be idempotent by id and token; `placed` names the placement through all its resizes. It may print the work that it
started, as JSON or as lines; all other output is ignored:

    {"pids": [4711, 4712]}        {"cgroup": "machine.slice/job-7.scope"}        {"domain": "instance-0007"}
    pids: 4711 4712               cgroup: machine.slice/job-7.scope              domain: instance-0007

Beside these, `status_file` names the file that has the exit status of the work once it has ended, and `log` the file
with what it prints, for people.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from redsched import logs
from redsched.agent.collectors.base import Named
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.machine.processes import start_mark
from redsched.agent.machine.usage import start_time
from redsched.model.claims import LOG_PATH, plain_text

MAX_OUTPUT_BYTES = 65_536
"""Output beyond this is read and discarded, so that the hook does not block and memory stays bounded."""

MAX_TAIL = 500
"""Characters from the end of a failed hook's output that are kept in the reason of the failure."""

_MAX_BYTES_A_CHARACTER = 4

_WORDS = ("domain", "cgroup", "pids", "status_file", "log")
_LOG = re.compile(LOG_PATH)
_log = logs.get_logger("redsched.agent")


class Verb(StrEnum):
    """The action that is requested from a hook."""

    START = "start"
    STOP = "stop"
    RESIZE = "resize"


class HookFailed(Exception):
    """The hook failed. The message says why in one line; `reason` adds the end of its output."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class HookNotRun(HookFailed):
    """The hook did not run: the command does not exist, or nothing listens at the URL."""


@dataclass(frozen=True, slots=True)
class HookRequest:
    """A request to a hook."""

    verb: Verb
    cell: str
    host: str
    work: JournalEntry
    alternates: tuple[str, ...] = ()
    """The other hosts that fitted when the claim was made, best first."""
    payload: Any = None
    """What the claim's request gives to the hook; None if it gives nothing."""
    devices: Mapping[str, str] = field(default_factory=dict)
    """The devices that the placement holds amounts of, by the names of their pools."""
    traceparent: str = ""
    """The span of this run (W3C Trace Context); '' without tracing."""

    def body(self) -> bytes:
        """Return the placement as JSON, with the work that the start hook named, and for a move with its source."""
        work = self.work
        fields: dict[str, Any] = {
            "verb": self.verb.value,
            "claim_id": work.id,
            "token": work.token,
            "placed": work.placed,
            "cell": self.cell,
            "host": self.host,
            "slots": dict(work.resizing_to or work.amounts),
            "project": work.project,
            "owner": work.owner,
            "consumer": work.consumer,
            "actor": work.origin.actor,
            "request_id": work.origin.request_id,
            "alternates": [host for host in self.alternates if host != self.host],
        }
        if self.devices:
            fields["devices"] = dict(self.devices)
        if self.payload is not None:
            fields["payload"] = self.payload
        if work.runtime_deadline_ms is not None:
            fields["runtime_deadline_ms"] = work.runtime_deadline_ms
        if work.named is not None:
            fields |= {"domain": work.named.domain, "cgroup": work.named.cgroup, "pids": list(work.named.pids)}
        if self.verb is Verb.RESIZE:
            fields["former_slots"] = dict(work.before)
        if self.verb is Verb.START and work.moves:
            fields["moves"] = dict(work.moves)
        return json.dumps(fields).encode()


class Output:
    """A hook's output, in bounded memory: `first` is its beginning, up to MAX_OUTPUT_BYTES; `last` its end."""

    def __init__(self) -> None:
        self.first = bytearray()
        self.last = bytearray()

    def add(self, part: bytes) -> None:
        """Append the next part of the output."""
        self.first += part[: MAX_OUTPUT_BYTES - len(self.first)]
        self.last += part
        del self.last[: -MAX_TAIL * _MAX_BYTES_A_CHARACTER]

    def reason(self, what: str) -> str:
        """Return `what` went wrong, followed by the end of the output on further lines."""
        return f"{what}\n{output_tail(self.last)}".strip()


def output_tail(output: bytes | bytearray) -> str:
    """Return the last LAST_WORDS characters of a hook's output; control characters except newlines become spaces."""
    return plain_text(output.decode(errors="replace")).strip()[-MAX_TAIL:]


class Hook(Protocol):
    """Runs requests. A cancelled request leaves no process or connection behind."""

    async def run(self, order: HookRequest) -> bytes:
        """Run a request and return the hook's output. Raises HookFailed."""
        ...


class NoHook:
    """A hook that does nothing: every claim is confirmed at once."""

    async def run(self, order: HookRequest) -> bytes:  # noqa: ARG002 - the protocol's signature
        """Do nothing."""
        return b""


def named_in(output: bytes) -> Named | None:
    """Return the work that a start hook named in its output; None if it named none."""
    text = output.decode(errors="replace").strip()
    return named_by(_parse_json(text) if text.startswith("{") else _parse_lines(text))


def named_by(fields: Mapping[str, Any]) -> Named | None:
    """Return the work that `domain`, `cgroup` and `pids` name; None if they name none."""
    pids = _pids(fields.get("pids"))
    started = {pid: start_mark(pid) for pid in pids}
    domain, cgroup, status_file = (_path(fields.get(name)) for name in ("domain", "cgroup", "status_file"))
    named = Named(
        domain, cgroup, _with_start_times(pids), started, status_file=status_file, log=_log_path(fields.get("log"))
    )
    return named if named != Named() else None


def _parse_json(text: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        _log.warning("hook printed invalid JSON; its work stays unnamed", output=text[:200])
        return {}
    return fields if isinstance(fields, dict) else {}


def _parse_lines(text: str) -> Mapping[str, Any]:
    pairs = (line.partition(":") for line in text.splitlines())
    found = {key.strip(): value.strip() for key, colon, value in pairs if colon and key.strip() in _WORDS}
    return found | {"pids": found.get("pids", "").replace(",", " ").split()}


def _path(value: object) -> str:
    """Return a name or path from a hook, '' if it is unsafe: with `..` a cgroup could be any file of the machine."""
    return value if isinstance(value, str) and len(value) <= 4096 and ".." not in value.split("/") else ""


def _log_path(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and _LOG.fullmatch(value) else ""


def _pids(value: object) -> list[int]:
    given = value if isinstance(value, list) else [value]
    pids = {int(one) for one in given if isinstance(one, int | str) and str(one).isdecimal() and len(str(one)) < 10}
    return sorted(pids - {0})[:1000]


def _with_start_times(pids: Iterable[int]) -> dict[int, float]:
    """Return the start times of running processes by pid; pids without a running process are left out."""
    started = {pid: start_time(pid) for pid in pids}
    return {pid: at_s for pid, at_s in started.items() if at_s is not None}
