"""The options that `select` and `explain` share, and the request that they describe.

The options are merged over the body in `--request`, and REST's model parses the result, so both have the same checks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from redsched.cli import completion, options
from redsched.cli.completion import Complete
from redsched.cli.options import Many
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.units import without_units

NOT_GIVEN: tuple[object, ...] = ([], {}, "", None)


def _many(*names: str, metavar: str | None = None, help: str, completed: Complete | None = None) -> Any:  # noqa: A002 - typer's own word
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, autocompletion=completed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """The given options, as text. An option that was not given is empty, and omitted from the body."""

    resources: Annotated[
        Many,
        typer.Argument(
            metavar="CLASS=AMOUNT...", help="Amounts by class, such as VCPU=2 MEMORY_MB=4Gi.", show_default=False
        ),
    ] = field(default_factory=list)
    request: options.RequestFile = ""
    require: Annotated[Many, _many("--require", metavar="TRAIT", help="Trait that the host must have. Repeatable.")] = (
        field(default_factory=list)
    )
    forbid: Annotated[
        Many, _many("--forbid", metavar="TRAIT", help="Trait that the host must not have. Repeatable.")
    ] = field(default_factory=list)
    any_of: Annotated[
        Many,
        _many(
            "--any-of",
            metavar="TRAIT,TRAIT...",
            help="Traits of which the host must have one. Repeatable: one of each list.",
        ),
    ] = field(default_factory=list)
    zone: Annotated[Many, _many("--zone", help="Only hosts in this zone. Repeatable: any of them.")] = field(
        default_factory=list
    )
    host: Annotated[
        Many, _many("--host", help="Only this host. Repeatable: any of them.", completed=completion.hosts)
    ] = field(default_factory=list)
    exclude_host: Annotated[
        Many, _many("--exclude-host", help="Exclude this host. Repeatable.", completed=completion.hosts)
    ] = field(default_factory=list)
    label: Annotated[
        Many,
        _many(
            "--label",
            metavar="KEY=VALUE",
            help="Label that the host must have; the value may start with an operator. Repeatable.",
        ),
    ] = field(default_factory=list)
    property: Annotated[
        Many,
        _many(
            "--property", metavar="KEY=VALUE", help="Property of the work, which aggregates may restrict. Repeatable."
        ),
    ] = field(default_factory=list)
    member_of: Annotated[
        Many,
        _many(
            "--member-of",
            metavar="NAME,NAME...",
            help="Only hosts in one of these aggregates. Repeatable: one of each list.",
            completed=completion.aggregates,
        ),
    ] = field(default_factory=list)
    not_member_of: Annotated[
        Many,
        _many(
            "--not-member-of",
            metavar="NAME",
            help="Exclude hosts in this aggregate. Repeatable.",
            completed=completion.aggregates,
        ),
    ] = field(default_factory=list)
    server_group: Annotated[
        str,
        typer.Option(
            "--server-group",
            help="Server group that the claim joins.",
            show_default=False,
            autocompletion=completion.server_groups,
        ),
    ] = ""
    spread: Annotated[
        Many,
        _many(
            "--spread",
            metavar="BY=SKEW",
            help="Spread evenly over zone, host or label:KEY. SKEW defaults to 1. Repeatable.",
        ),
    ] = field(default_factory=list)
    soft_spread: Annotated[
        Many, _many("--soft-spread", metavar="BY=SKEW", help="Like --spread, but as a preference.")
    ] = field(default_factory=list)
    group: Annotated[
        Many,
        _many(
            "--group", metavar="JSON", help="Amounts from a single pool: {name: a, resources: {PCPU: 2}}. Repeatable."
        ),
    ] = field(default_factory=list)
    numa: Annotated[
        str,
        typer.Option(
            "--numa",
            metavar="JSON",
            help="The guest's NUMA cells: {cells: [{cpus: 4, memory_mb: 8192}]}.",
            show_default=False,
        ),
    ] = ""
    pci: Annotated[
        Many,
        _many(
            "--pci",
            metavar="CLASS=COUNT:POLICY",
            help="PCI devices; POLICY is required, preferred or legacy. Repeatable.",
        ),
    ] = field(default_factory=list)
    query: Annotated[
        str,
        typer.Option(
            "--query",
            metavar="JSON",
            help='Query that the host must match, such as [">=", "$free.VCPU", 8].',
            show_default=False,
        ),
    ] = ""
    hint: Annotated[
        Many,
        _many(
            "--hint",
            metavar="NAME=VALUE",
            help="A hint: same_host, different_host, build_near_host_ip or cidr. Repeatable.",
        ),
    ] = field(default_factory=list)
    policy: Annotated[
        str, typer.Option("--policy", help="Weighing policy, such as spread or pack.", show_default=False)
    ] = ""
    weight: Annotated[Many, _many("--weight", metavar="NAME=X", help="Multiplier of a weigher. Repeatable.")] = field(
        default_factory=list
    )
    count: Annotated[
        int | None, typer.Option("--count", "-n", help="Number of identical places.", show_default=False)
    ] = None
    project: Annotated[str, typer.Option("--project", help="Project that owns the claims.", show_default=False)] = ""


takes_asked = options.takes(RequestOptions, "asked")
"""Decorator that gives a command every option of `RequestOptions`, as its argument `asked`."""


def request_of(asked: RequestOptions, **more: Any) -> Request:
    """Return the request from the file, the options, and `more` of REST's fields. Raises InvalidRequest."""
    said = {**_plain(asked), **_parts(asked), **more}
    body = options.file_body(asked.request)
    body |= {name: value for name, value in said.items() if value not in NOT_GIVEN}
    if not body.keys() & {"resources", "groups", "numa", "pci", "members"}:
        raise InvalidRequest("the request is empty: give CLASS=AMOUNT, --group, --numa, --pci or --request")
    return options.as_model(body, Request)


def _plain(asked: RequestOptions) -> dict[str, Any]:
    return {
        "resources": options.amounts(asked.resources),
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
        "groups": [without_units(options.written("--group", one)) for one in asked.group],
        "numa": without_units(options.written("--numa", asked.numa)) if asked.numa else None,
        "pci": [_devices(one) for one in asked.pci],
        "query": options.written("--query", asked.query) if asked.query else None,
        "spread": [_spread(one, hard=True) for one in asked.spread]
        + [_spread(one, hard=False) for one in asked.soft_spread],
        "hints": _hints(asked.hint),
    }


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
