"""Arguments and options that several commands share, and how their texts are read."""

from collections.abc import Iterable
from typing import Annotated

import typer

from redsched.errors import InvalidRequest
from redsched.names import check_name

Url = Annotated[str, typer.Option("--url", help="The store. Default: REDSCHED_REDIS_URL.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for programs, as the REST API answers it.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]
After = Annotated[str, typer.Option("--after", help="Go on after this one.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="At once, whatever the host still runs.")]
HostArgument = Annotated[
    str, typer.Argument(metavar="HOST", help="The host's name.", callback=lambda name: check_name("host", name))
]


def filter_name(what: str, value: str) -> str | None:
    """The name that a list is filtered by; None where the option was not given. Raises InvalidRequest."""
    return check_name(what, value) if value else None


Resources = Annotated[list[str], typer.Argument(metavar="CLASS=AMOUNT...", help="Such as VCPU=2 MEMORY_MB=4096.")]
Required = Annotated[list[str], typer.Option("--require", metavar="TRAIT", help="A trait the host must have.")]
Forbidden = Annotated[list[str], typer.Option("--forbid", metavar="TRAIT", help="A trait the host must not have.")]
AnyOf = Annotated[
    list[str], typer.Option("--any-of", metavar="TRAIT,TRAIT...", help="Traits of which the host must have one.")
]
Zones = Annotated[list[str], typer.Option("--zone", help="Only this zone; given again: or that one.")]
OnlyHosts = Annotated[list[str], typer.Option("--host", help="Only this host; given again: or that one.")]
ExcludeHosts = Annotated[list[str], typer.Option("--exclude-host", help="Not this host.")]
Labels = Annotated[list[str], typer.Option("--label", metavar="KEY=VALUE", help="A label the host must have.")]
Policy = Annotated[str, typer.Option("--policy", help="How to weigh: spread or pack.", show_default=False)]
Weights = Annotated[list[str], typer.Option("--weight", metavar="NAME=X", help="Multiplier of a weigher.")]


def amounts(given: Iterable[str]) -> dict[str, int]:
    """Read `VCPU=2` pairs. Raises InvalidRequest."""
    return {name: _whole(name, value) for name, value in pairs("amount", given).items()}


def multipliers(given: Iterable[str]) -> dict[str, float]:
    """Read `binpack=1.5` pairs. Raises InvalidRequest."""
    return {name: _number(name, value) for name, value in pairs("weight", given).items()}


def pairs(what: str, given: Iterable[str]) -> dict[str, str]:
    """Read NAME=VALUE pairs, each name once. Raises InvalidRequest."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise InvalidRequest(f"{what} {one!r} is not of the form NAME=VALUE")
        if name in found:
            raise InvalidRequest(f"{what} {name!r} is given twice: give it once")
        found[name] = value
    return found


def _whole(name: str, value: str) -> int:
    if not (value.isascii() and value.removeprefix("-").isdecimal() and len(value) <= 17):
        raise InvalidRequest(f"{name} must be a whole number, not {value[:80]!r}")
    return int(value)


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InvalidRequest(f"weight {name!r} must be a number, not {value[:80]!r}") from None
