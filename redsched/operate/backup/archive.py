"""The archive format: `export` writes it, `import` and `replay` read it. docs/howto/backup.md shows examples.

Each line is a JSON object with its `kind`. The head comes first and has the number of the other lines, so that a
truncated file is detected.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from redsched.errors import InvalidRequest
from redsched.model import Aggregate, Claim, HostReport, HostStatus, Quota, Request, ServerGroup, SharedPool, Token
from redsched.model.json_codec import Fields, as_text, from_text
from redsched.model.unique_keys import loads
from redsched.model.validation import check_name, check_slot, parse_int
from redsched.pacing import Spread
from redsched.store.codec.claim_fields import alternates_from, alternates_text
from redsched.store.codec.fields import AMOUNT, claim_from

FORMAT = 3
"""The version of the format, incremented when older readers can no longer read it."""
MAX_LINE = 1_000_000


@dataclass(frozen=True, slots=True)
class Head:
    """The source and time of an export. `seq` and `seq_after` are the cell's seq before and after it was read."""

    format: int
    schema: str
    cell: str
    epoch: str
    seq: int
    seq_after: int
    exported_at_ms: int
    lines: int

    @property
    def consistent(self) -> bool:
        """Whether nothing changed while the cell was read."""
        return self.seq == self.seq_after


class Packed(Mapping[str, Mapping[str, str]]):
    """Hashes by name, each stored as one string: the garbage collector would have to traverse a million dicts."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts = Spread[str]()

    def put(self, name: str, values: Mapping[str, str]) -> None:
        """Store the fields of a hash."""
        self._texts[name] = json.dumps(values)

    def drop(self, name: str) -> None:
        """Remove a hash."""
        del self._texts[name]

    def __getitem__(self, name: str) -> Mapping[str, str]:
        found: dict[str, str] = json.loads(self._texts[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True, slots=True)
class Archive:
    """The contents of a cell.

    `statuses` are those that operators gave hosts, by host. `claims` has the hashes of live and shelved claims by id,
    `alternates` the lists of those that have one, as stored, `requests` the canonical requests by digest.
    """

    head: Head
    aggregates: tuple[Aggregate, ...] = ()
    groups: tuple[ServerGroup, ...] = ()
    pools: tuple[SharedPool, ...] = ()
    quotas: tuple[Quota, ...] = ()
    hosts: tuple[HostReport, ...] = ()
    statuses: Mapping[str, HostStatus] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    alternates: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)


DECLARED: Mapping[str, tuple[str, type[Any]]] = {
    "aggregate": ("aggregates", Aggregate),
    "server-group": ("groups", ServerGroup),
    "pool": ("pools", SharedPool),
    "quota": ("quotas", Quota),
}
KINDS = ("head", *DECLARED, "host", "claim", "request")


def archive_lines(archive: Archive) -> Iterator[str]:
    """Yield the lines of an archive, without line ends. The head has the number of the other lines."""
    lines = list(_body(archive))
    head = {**asdict(archive.head), "lines": len(lines), "consistent": archive.head.consistent}
    yield json.dumps({"kind": "head", **head})
    yield from lines


def _body(archive: Archive) -> Iterator[str]:
    for kind, (name, of) in DECLARED.items():
        for one in getattr(archive, name):
            yield json.dumps({"kind": kind, **_codec(of).of(one)})
    for report in archive.hosts:
        status = archive.statuses.get(report.name, HostStatus.ENABLED)
        yield json.dumps({"kind": "host", "status": status.value, **_codec(HostReport).of(report)})
    for claim_id in sorted(archive.claims):
        line: dict[str, Any] = {"kind": "claim", "id": claim_id, "fields": archive.claims[claim_id]}
        if claim_id in archive.alternates:
            line["alternates"] = alternates_from(archive.alternates[claim_id])
        yield json.dumps(line)
    for digest, text in sorted(archive.requests.items()):
        yield json.dumps({"kind": "request", "digest": digest, "request": json.loads(text)})


def read(lines: Iterable[str]) -> Archive:
    """Parse the lines of an archive. Raises InvalidRequest, which names the line and what to do."""
    reading = ArchiveReader()
    for number, line in enumerate(lines, 1):
        try:
            reading.take(json_object(line))
        except InvalidRequest as error:
            raise InvalidRequest(f"line {number}: {error.detail}") from error
    return reading.archive()


class ArchiveReader:
    """The parts of an archive that have been read so far. With a `head`, it expects none, and any number of lines."""

    def __init__(self, head: Head | None = None) -> None:
        self._head, self._counts_lines = head, head is None
        self._lines = 0
        self._found: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
        self._statuses: dict[str, HostStatus] = {}
        self._alternates: dict[str, str] = {}

    def take(self, item: dict[str, Any]) -> None:
        """Read one line. Raises InvalidRequest."""
        kind = item.pop("kind", None)
        if kind not in KINDS:
            raise InvalidRequest(f"kind {kind!r:.80} is not known: use one of {', '.join(KINDS)}")
        if (kind == "head") == (self._head is not None):
            raise InvalidRequest("the head must be the first line, and occur once: use the whole export of one cell")
        if kind == "head":
            self._head = _head(item)
            return
        self._lines += 1
        name, thing = _declared(kind, item) if kind in DECLARED else getattr(self, f"_{kind}")(item)
        if name in self._found[kind]:
            raise InvalidRequest(f"{kind} {name!r} is there twice: remove one of them")
        self._found[kind][name] = thing

    def archive(self) -> Archive:
        """Return what was read. Raises InvalidRequest if something is missing."""
        if self._head is None:
            raise InvalidRequest("the file is empty: use one that `redsched export` has written")
        if self._counts_lines and self._lines != self._head.lines:
            raise InvalidRequest(
                f"the head gives {self._head.lines} lines, but {self._lines} follow: the file was truncated or "
                "edited; export again, or correct `lines` in its first line"
            )
        parts = {name: tuple(self._found[kind].values()) for kind, (name, _) in DECLARED.items()}
        found = self._found
        hosts = tuple(found["host"].values())
        self._check_homes()
        return Archive(
            self._head,
            **parts,
            hosts=hosts,
            statuses=self._statuses,
            claims=found["claim"],
            alternates=self._alternates,
            requests=found["request"],
        )

    def _check_homes(self) -> None:
        for claim_id, item in self._found["claim"].items():
            if item["state"] != "ended" and item["host"] not in self._found["host"]:
                raise InvalidRequest(
                    f"claim {claim_id} is on host {item['host']!r}, which has no line in this file: add it, or remove "
                    "the claim"
                )

    def _host(self, item: dict[str, Any]) -> tuple[str, Any]:
        status = item.pop("status", HostStatus.ENABLED.value)
        if status not in set(HostStatus):
            raise InvalidRequest(f"unknown status {status!r:.80}: use {', '.join(HostStatus)}")
        one = replace(from_text(as_text(item), HostReport, {}), cell=self._cell)
        self._statuses[one.name] = HostStatus(status)
        return one.name, one

    def _claim(self, item: dict[str, Any]) -> tuple[str, Any]:
        alternates = item.pop("alternates", None)
        _check_fields(item, "id", "fields")
        values = item["fields"]
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise InvalidRequest("fields must map names to strings, as `redsched export` writes them")
        check_name("claim", str(item["id"]))
        checked_claim(self._cell, item["id"], values)
        if alternates is not None:
            if not isinstance(alternates, list) or not all(isinstance(host, str) for host in alternates):
                raise InvalidRequest("alternates must be a list of hosts, as `redsched export` writes it")
            for host in alternates:
                check_name("host", host)
            self._alternates[item["id"]] = alternates_text(alternates)
        return item["id"], values

    def _request(self, item: dict[str, Any]) -> tuple[str, Any]:
        _check_fields(item, "digest", "request")
        text = as_text(item["request"])
        digest = Request.from_canonical(text).digest()
        if digest != item["digest"]:
            raise InvalidRequest(f"the request's digest is {digest}, not {item['digest']!r:.80}: restore the request")
        return digest, text

    @property
    def _cell(self) -> str:
        return self._head.cell if self._head else ""


def checked_claim(cell: str, claim_id: str, values: Mapping[str, str]) -> Claim:
    """Parse a claim's hash. Raises InvalidRequest if it is not the hash of a claim."""
    try:
        claim = claim_from(cell, claim_id, values)
    except (KeyError, ValueError) as error:
        raise InvalidRequest(
            f"claim {claim_id}: host, state, token or end_reason is missing or wrong: {error}"
        ) from error
    Token.parse(claim.token)
    check_name("host", claim.host)
    for name, value in values.items():
        if name.startswith(AMOUNT):
            check_slot(name[len(AMOUNT) :])
            if parse_int(value, -1) < 0:
                raise InvalidRequest(f"claim {claim_id}: {name} must be a whole number, not {value[:80]!r}")
    return claim


def _head(item: dict[str, Any]) -> Head:
    item.pop("consistent", None)
    if item.get("format") != FORMAT:
        raise InvalidRequest(
            f"format {item.get('format')!r:.80} is not the {FORMAT} of this release: use the release that wrote it"
        )
    head = from_text(as_text(item), Head, {})
    for name in ("seq", "seq_after", "exported_at_ms", "lines"):
        if type(getattr(head, name)) is not int:
            raise InvalidRequest(f"{name} of the head must be a whole number: restore it")
    Token.parse(f"{head.epoch}.0")
    check_name("cell", head.cell)
    return head


def _declared(kind: str, item: dict[str, Any]) -> tuple[str, Any]:
    one = from_text(as_text(item), DECLARED[kind][1], {})
    return one.project if kind == "quota" else one.name, one


def json_object(line: str, remedy: str = "restore the line, or remove it and correct `lines`") -> dict[str, Any]:
    """Parse a line. Raises InvalidRequest if it is not a JSON object; `remedy` says what to do about a broken line."""
    if not line.strip():
        raise InvalidRequest(f"it is empty: {remedy}")
    if len(line) > MAX_LINE:
        raise InvalidRequest(f"it has more than {MAX_LINE} characters, which no line of an export has")
    try:
        item = loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"it is not JSON ({error}): {remedy}") from None
    if not isinstance(item, dict):
        raise InvalidRequest("it is not a JSON object: each line must be one, with its `kind`")
    return item


def _check_fields(item: Mapping[str, Any], *names: str) -> None:
    if set(item) != set(names):
        raise InvalidRequest(
            f"it has the members {', '.join(sorted(item)) or 'none'}, and must have {', '.join(names)}"
        )


def _codec(of: type[Any]) -> Fields:
    """Return the codec for a dataclass that leaves out fields with their default value."""
    defaults = {one.name: one.default_factory() if callable(one.default_factory) else one.default for one in fields(of)}
    return Fields(tuple(defaults), defaults)
