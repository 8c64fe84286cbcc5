"""The options that `select` and `explain` share, and the request that they describe.

The options are merged over the body in `--request`, and REST's model parses the result, so both have the same checks.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import typer

from redsched.cli import completion, options
from redsched.cli.classes import UnknownClass, naming_classes
from redsched.cli.completion import Complete
from redsched.cli.options import Many
from redsched.cli.output import tables
from redsched.cli.short_forms import Same, parts_of
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.units import without_units
from redsched.model.validation import is_class

NOT_GIVEN: tuple[object, ...] = ([], {}, "", None)
EMPTY: tuple[object, ...] = (None,)
"""What is no payload: any other value of JSON is one."""


def _one(help: str, *names: str, metavar: str | None = None, completed: Complete | None = None) -> Any:  # noqa: A002 - typer's own word
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, autocompletion=completed)


def _many(help: str, *names: str, metavar: str | None = None, completed: Complete | None = None) -> Any:  # noqa: A002
    return _one(f"{help} Repeatable.", *names, metavar=metavar, completed=completed)


about = partial(options.about, Request)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """The options as text. An option that was not given is empty, and is omitted from the body."""

    resources: Annotated[
        Many,
        typer.Argument(
            metavar="CLASS=AMOUNT...",
            help="Amounts by class, such as VCPU=2 MEMORY_MB=4Gi. GPU=2 takes two whole GPUs, and GPU=0.5 half of one.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    request: options.RequestFile = ""
    same: Annotated[
        Same | None, _one("Take the GPUs, other devices and groups from one NUMA node.", "--same", metavar="numa")
    ] = None
    show_request: Annotated[
        bool | None,
        typer.Option("--show-request", help="Print the request as JSON for REST, and do nothing.", show_default=False),
    ] = None
    require: Annotated[Many, _many(about("required"), "--require", metavar="TRAIT")] = field(default_factory=list)
    forbid: Annotated[Many, _many(about("forbidden"), "--forbid", metavar="TRAIT")] = field(default_factory=list)
    any_of: Annotated[Many, _many(about("any_of"), "--any-of", metavar="TRAIT,TRAIT...")] = field(default_factory=list)
    zone: Annotated[Many, options.many("Only hosts in this zone.", "--zone")] = field(default_factory=list)
    host: Annotated[Many, options.many("Only this host.", "--host", completed=completion.hosts)] = field(
        default_factory=list
    )
    exclude_host: Annotated[Many, _many(about("exclude_hosts"), "--exclude-host", completed=completion.hosts)] = field(
        default_factory=list
    )
    label: Annotated[Many, _many(about("labels"), "--label", metavar="KEY=VALUE")] = field(default_factory=list)
    property: Annotated[Many, _many(about("properties"), "--property", metavar="KEY=VALUE")] = field(
        default_factory=list
    )
    member_of: Annotated[
        Many,
        _many(
            "Only hosts in one of these aggregates; of several lists, in one of each.",
            "--member-of",
            metavar="NAME,NAME...",
            completed=completion.aggregates,
        ),
    ] = field(default_factory=list)
    not_member_of: Annotated[
        Many,
        _many("Exclude hosts in this aggregate.", "--not-member-of", metavar="NAME", completed=completion.aggregates),
    ] = field(default_factory=list)
    server_group: Annotated[str, _one(about("server_group"), "--server-group", completed=completion.server_groups)] = ""
    spread: Annotated[
        Many,
        _many("Spread evenly over zone, host or label:KEY. SKEW defaults to 1.", "--spread", metavar="BY=SKEW"),
    ] = field(default_factory=list)
    soft_spread: Annotated[Many, _many("Like --spread, but as a preference.", "--soft-spread", metavar="BY=SKEW")] = (
        field(default_factory=list)
    )
    group: Annotated[
        Many, _many("Amounts from a single pool: {name: a, resources: {PCPU: 2}}.", "--group", metavar="JSON")
    ] = field(default_factory=list)
    numa: Annotated[
        str, _one("The guest's NUMA cells: {cells: [{cpus: 4, memory_mb: 8192}]}.", "--numa", metavar="JSON")
    ] = ""
    pci: Annotated[
        Many,
        _many("PCI devices; POLICY is required, socket, preferred or legacy.", "--pci", metavar="CLASS=COUNT:POLICY"),
    ] = field(default_factory=list)
    query: Annotated[
        str,
        _one('Query that the host must match, such as [">=", "$free.VCPU", 8].', "--query", metavar="JSON"),
    ] = ""
    hint: Annotated[
        Many,
        _many("A hint: same_host, different_host, build_near_host_ip or cidr.", "--hint", metavar="NAME=VALUE"),
    ] = field(default_factory=list)
    policy: Annotated[str, _one(about("policy"), "--policy")] = ""
    weight: Annotated[Many, _many(about("weights"), "--weight", metavar="NAME=X")] = field(default_factory=list)
    count: Annotated[int | None, _one(about("count"), "--count", "-n")] = None
    project: Annotated[str, _one(about("project"), "--project")] = ""


_takes_options = options.takes(RequestOptions, "asked")


def takes_asked(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command every option of `RequestOptions`, as its argument `asked`, and errors that name the classes."""
    return _takes_options(naming_classes(command))


def request_of(asked: RequestOptions, **more: Any) -> Request:
    """Return the request from the file, the options, and `more` of REST's fields. Raises InvalidRequest."""
    said = {**_plain(asked), **_parts(asked), **more}
    body = options.file_body(asked.request)
    body |= {name: value for name, value in said.items() if value not in (EMPTY if name == "payload" else NOT_GIVEN)}
    if not body.keys() & {"resources", "groups", "numa", "pci", "members"}:
        raise InvalidRequest("the request is empty: give CLASS=AMOUNT, --group, --numa, --pci or --request")
    _check_classes(body)
    request = options.as_model(body, Request)
    if asked.show_request:
        tables.show_json(body)
        raise typer.Exit
    return request


def _check_classes(body: Mapping[str, Any]) -> None:
    """Raise UnknownClass for the first class that is none, before the types of all fields are checked."""
    groups = body.get("groups", ())
    parts = [body, *(groups if isinstance(groups, list) else ())]
    for resources in (part.get("resources") for part in parts if isinstance(part, dict)):
        for name in resources if isinstance(resources, dict) else ():
            if isinstance(name, str) and not is_class(name):
                raise UnknownClass(name)


def _plain(asked: RequestOptions) -> dict[str, Any]:
    return {
        "required": asked.require,
        "forbidden": asked.forbid,
        "any_of": _lists(asked.any_of),
        "zone": asked.zone,
        "hosts": asked.host,
        "exclude_hosts": asked.exclude_host,
        "labels": options.pairs("label", asked.label),
        "properties": options.pairs("property", asked.property),
        "member_of": _lists(asked.member_of),
        "not_member_of": asked.not_member_of,
        "server_group": asked.server_group,
        "policy": asked.policy,
        "weights": options.multipliers(asked.weight),
        "count": asked.count,
        "project": asked.project,
    }


def _parts(asked: RequestOptions) -> dict[str, Any]:
    return {
        **parts_of(asked.resources, map(_group, asked.group), asked.same),
        "numa": without_units(options.written("--numa", asked.numa)) if asked.numa else None,
        "pci": [_devices(one) for one in asked.pci],
        "query": options.written("--query", asked.query) if asked.query else None,
        "spread": [_spread(one, hard=True) for one in asked.spread]
        + [_spread(one, hard=False) for one in asked.soft_spread],
        "hints": _hints(asked.hint),
    }


def _group(text: str) -> Any:
    return without_units(options.written("--group", text))


def _lists(given: Iterable[str]) -> list[list[str]]:
    return [one.split(",") for one in given]


def _spread(text: str, hard: bool) -> dict[str, Any]:
    by, equals, skew = text.partition("=")
    return {"by": by, "hard": hard} | ({"max_skew": options.whole("max_skew", skew)} if equals else {})


def _devices(text: str) -> dict[str, Any]:
    resource_class, count = options.pair("--pci", text)
    count, colon, policy = count.partition(":")
    found = {"class": resource_class, "count": options.whole("count", count)}
    return found | ({"numa_policy": policy} if colon else {})


def _hints(given: Iterable[str]) -> dict[str, Any]:
    """Parse hints. Claims may be named several times, an address and its network only once."""
    found: dict[str, Any] = {}
    for name, value in (options.pair("--hint", one) for one in given):
        if name in ("same_host", "different_host"):
            found.setdefault(name, []).append(value)
        elif name in found:
            raise InvalidRequest(f"--hint {name} is given twice: give it once")
        else:
            found[name] = value
    return found
