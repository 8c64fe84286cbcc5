"""The file of local work (REDSCHED_LOCAL): work that an operator runs by hand, so that its room is not reassigned.

local:
  - id: console-alice
    slots: {VCPU: 2, MEMORY_MB: 4Gi}
    project: ops
    consumer: alice
    pids: [4711]          # or cgroup, or domain, as a hook would name it
    host: h17             # only where the agent speaks for more than one host
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from redsched import logs
from redsched.agent.collectors.base import LocalWork
from redsched.agent.hooks.base import named_by
from redsched.auth.private_file import version_of
from redsched.errors import InvalidRequest
from redsched.model.units import without_units
from redsched.model.validation import check_name
from redsched.yaml_io import parse_yaml, read_text

_KEYS = {"id", "slots", "project", "consumer", "host", "domain", "cgroup", "pids"}
_NAMED = {"domain", "cgroup", "pids"}
_log = logs.get_logger("redsched.agent")

ByHost = dict[str, tuple[LocalWork, ...]]


class LocalFile:
    """A file of local work. It is read on creation, which may raise InvalidRequest, and again when it has changed.

    A later read that fails is logged once and changes nothing: a claim ends only when the file no longer lists it, and
    not because the file could not be read.
    """

    def __init__(self, path: Path, hosts: Collection[str]) -> None:
        self._path, self._hosts = path, frozenset(hosts)
        self._version = version_of(path)
        self._local_work = self._read()

    def of(self, host: str) -> tuple[LocalWork, ...]:
        """Return the local work of a host that the file lists now."""
        if (version := version_of(self._path)) != self._version:
            self._version = version
            try:
                self._local_work = self._read()
            except InvalidRequest as error:
                _log.error("local file invalid, keeping its previous content", error=str(error))
        return self._local_work.get(host, ())

    def _read(self) -> ByHost:
        text = read_text("REDSCHED_LOCAL", self._path)
        try:
            return _by_host(parse_yaml(text), self._hosts)
        except InvalidRequest as error:
            raise InvalidRequest(f"REDSCHED_LOCAL {self._path}: {error}") from error


def _by_host(document: object, hosts: frozenset[str]) -> ByHost:
    if not isinstance(document, dict) or document.keys() != {"local"} or not isinstance(document["local"], list):
        raise InvalidRequest("it must have `local:` with a list under it, and nothing else; `local: []` for none")
    by_host: dict[str, dict[str, LocalWork]] = {}
    for number, entry in enumerate(document["local"], 1):
        try:
            host, work = _entry(entry, hosts)
        except InvalidRequest as error:
            raise InvalidRequest(f"entry {number}: {error}") from error
        if work.id in by_host.setdefault(host, {}):
            raise InvalidRequest(f"entry {number}: {work.id!r} is given twice: ids must be unique on a host")
        by_host[host][work.id] = work
    return {host: tuple(works.values()) for host, works in by_host.items()}


def _entry(entry: object, hosts: frozenset[str]) -> tuple[str, LocalWork]:
    if not isinstance(entry, dict):
        raise InvalidRequest(f"it must be a mapping (key: value), not {entry!r:.80}")
    unknown = sorted(str(key) for key in entry.keys() - _KEYS)
    if unknown:
        raise InvalidRequest(f"unknown key {unknown[0]!r}: use {', '.join(sorted(_KEYS))}")
    slots = without_units(entry.get("slots"), "slots")
    if not isinstance(slots, dict) or not all(isinstance(slot, str) for slot in slots):
        raise InvalidRequest(f"slots must be a mapping (slot: amount), not {slots!r:.80}")
    work = LocalWork(
        check_name("claim", _text(entry, "id")),
        slots,
        _text(entry, "project"),
        _text(entry, "consumer"),
        named_by({key: entry[key] for key in entry.keys() & _NAMED}),
    )
    return _host(entry, hosts), work


def _host(entry: Mapping[str, Any], hosts: frozenset[str]) -> str:
    host = _text(entry, "host")
    if not host and len(hosts) == 1:
        return next(iter(hosts))
    if host not in hosts:
        raise InvalidRequest(f"host {host!r} is not one that this agent speaks for: name one of its hosts")
    return host


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise InvalidRequest(f"{key} must be text, not {value!r:.80}: put it in quotes")
    return value
