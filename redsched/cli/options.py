"""Options and arguments that several commands share, and the parsing of their values."""

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_json

from redsched.cli import completion
from redsched.errors import ClaimState, InvalidRequest, NotFound
from redsched.model.filters import ME
from redsched.model.unique_keys import DuplicateKey, loads
from redsched.model.units import parse_amount, parse_seconds, without_units
from redsched.model.validation import check_name, check_owner
from redsched.requests.parsing import Model, parse

Many = list[str]
Url = Annotated[str, typer.Option("--url", help="URL of the store. Default: REDSCHED_REDIS_URL.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as the REST API returns it.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="Maximum number of items.")]
After = Annotated[
    str, typer.Option("--after", help="Continue after this item of the previous page.", show_default=False)
]
Mine = Annotated[bool, typer.Option("--mine", help="Claims that the caller owns; over REST.")]
Force = Annotated[bool, typer.Option("--force", help="Free the amounts at once, even if the host still runs the work.")]
MAX_AGE_S = 3_650 * 86_400
WAIT = "How long to wait for room if nothing fits."
RequestFile = Annotated[
    str,
    typer.Option(
        "--request",
        metavar="FILE",
        help="File with the body of the REST request, as JSON or YAML; - for stdin. Other options override it.",
        show_default=False,
    ),
]


def about(body: Any, name: str) -> str:
    """Return the description of a body's field, for an option with the same meaning."""
    is_model = issubclass(body, BaseModel)
    found = (body.model_fields[name],) if is_model else body.__dataclass_fields__[name].type.__metadata__
    return next(one.description for one in found if isinstance(one, FieldInfo) and one.description)


def named(metavar: str, help: str, what: str, completed: completion.Complete) -> Any:  # noqa: A002 - typer's own word
    """Return an argument that takes a name, validated as the name of `what`."""
    return typer.Argument(
        metavar=metavar, help=help, callback=lambda name: check_name(what, name), autocompletion=completed
    )


HostArgument = Annotated[str, named("HOST", "The host's name.", "host", completion.hosts)]
ClaimArgument = Annotated[str, named("CLAIM", "The claim's id.", "claim id", completion.claims)]


def takes(shared: type, argument: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command an option for each field of a dataclass, passed as one `argument`."""
    hints = get_type_hints(shared, include_extras=True)
    of_class = [_option(one.name, _default(one), hints[one.name]) for one in fields(shared)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != argument]
        own_first = sorted(own, key=lambda one: not _is_required(one))
        named = [_option(one.name, one.default, one.annotation) for one in own_first]
        required = sum(map(_is_required, own))
        parameters = [*named[:required], *of_class, *named[required:]]

        @functools.wraps(command)
        def with_options(**given: Any) -> Any:
            return command(**{argument: shared(**{one.name: given.pop(one.name) for one in of_class})}, **given)

        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate


def _option(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _is_required(one: inspect.Parameter) -> bool:
    """Return whether a parameter is an argument of its own, which comes before those that are shared."""
    return one.default is inspect.Parameter.empty


def _default(one: Any) -> Any:
    return [] if one.default_factory is list else one.default


def before_now_ms(seconds_ago: int) -> int:
    """Return the time so many seconds ago by this machine's clock, Unix ms; 0 for 0 seconds."""
    return int((time.time() - seconds_ago) * 1000) if seconds_ago else 0


def ages(older_than: int, newer_than: int) -> dict[str, int]:
    """Return the filters of claims by how long ago they were claimed. Raises InvalidRequest if none can match."""
    before_ms, since_ms = _times("claim", older_than, newer_than)
    return {"claimed_before_ms": before_ms, "claimed_after_ms": since_ms}


def event_times(older_than: int, newer_than: int) -> dict[str, int]:
    """Return the filters of events by how long ago they happened. Raises InvalidRequest if none can match."""
    before_ms, since_ms = _times("event", older_than, newer_than)
    return {"before_ms": before_ms, "since_ms": since_ms}


def _times(what: str, older_than: int, newer_than: int) -> tuple[int, int]:
    if older_than and newer_than and older_than >= newer_than:
        raise InvalidRequest(
            f"no {what} is older than {older_than} s and newer than {newer_than} s: give --newer-than the longer time"
        )
    return before_now_ms(older_than), before_now_ms(newer_than)


def many(help: str, *names: str, completed: completion.Complete | None = None) -> Any:  # noqa: A002 - typer's own word
    """Return a repeatable option."""
    return typer.Option(*names, help=f"{help} Repeatable: any of them.", show_default=False, autocompletion=completed)


def seconds(*names: str, most: int, help: str, least: int = 0) -> Any:  # noqa: A002 - typer's own word
    """Return an option that takes a duration: in seconds, or with a unit such as 90m."""

    def parse(text: object) -> int:
        try:
            found = parse_seconds("the time", str(text))
        except InvalidRequest as error:
            raise typer.BadParameter(error.detail) from error
        if not least <= found <= most:
            raise typer.BadParameter(f"{text} is not in the range from {least} to {most} seconds")
        return found

    return typer.Option(*names, parser=parse, metavar="TIME", help=help)


def filter_names(what: str, values: Iterable[str]) -> list[str]:
    """Return the names that a list is filtered by, validated. Raises InvalidRequest."""
    return [check_name(what, value) for value in values]


def owners(named: Iterable[str], mine: bool) -> list[str]:
    """Return the owners whose claims are meant; none for claims of all. Raises InvalidRequest."""
    return [check_owner(one) for one in named] + [ME] * mine


def file_body(file: str) -> dict[str, Any]:
    """Read the body in a file (`-`: stdin); {} if no file is named. Raises InvalidRequest."""
    if not file:
        return {}
    from redsched.yaml_io import read_text

    text = sys.stdin.read() if file == "-" else read_text("request", Path(file))
    found = written(f"request {file}", text)
    if not isinstance(found, dict):
        raise InvalidRequest(
            f"request {file} is not a mapping: write the body of the REST request, such as resources: ..."
        )
    return without_units(found)  # type: ignore[no-any-return]  # a mapping stays a mapping


def written(what: str, text: str) -> Any:
    """Parse a text in JSON or YAML. Raises InvalidRequest."""
    from redsched.yaml_io import parse_yaml  # few options and commands need YAML

    try:
        return parse_yaml(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{what}: {error.detail}") from error


def json_value(what: str, text: str) -> Any:
    """Parse a text in JSON, and not in YAML, which reads some texts as other values. Raises InvalidRequest."""
    try:
        return loads(text)
    except DuplicateKey as error:
        raise InvalidRequest(f"{what} {error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{what} is not JSON: {error}") from error


@contextmanager
def names_force(command: str) -> Iterator[None]:
    """Replace `force it` in a ClaimState error by the command that forces it."""
    try:
        yield
    except ClaimState as error:
        raise ClaimState(error.detail.replace("force it", f"use `{command}`"), error.facts) from error


@contextmanager
def names_option(words: str, command: str) -> Iterator[None]:
    """Replace some words of a NotFound error, about a field of the API, by the command with the option."""
    try:
        yield
    except NotFound as error:
        raise NotFound(error.detail.replace(words, command), error.facts) from error


def as_model(body: dict[str, Any], model: type[Model], name: str = "") -> Model:
    """Parse a body as REST does. Raises InvalidRequest."""
    try:
        text = to_json(body)
    except PydanticSerializationError as error:
        raise InvalidRequest(f"the options cannot be encoded as JSON: {error}") from error
    return parse(text, model, name)


def amounts(given: Iterable[str]) -> dict[str, int]:
    """Parse pairs such as `VCPU=2` and `MEMORY_MB=4Gi`. Raises InvalidRequest."""
    return {name: parse_amount(name, value) for name, value in pairs("amount", given).items()}


def multipliers(given: Iterable[str]) -> dict[str, float]:
    """Parse pairs such as `binpack=1.5`. Raises InvalidRequest."""
    return {name: _number(name, value) for name, value in pairs("weight", given).items()}


def pairs(what: str, given: Iterable[str]) -> dict[str, str]:
    """Parse NAME=VALUE pairs, each name once. Raises InvalidRequest."""
    found: dict[str, str] = {}
    for one in given:
        name, value = pair(what, one)
        if name in found:
            raise InvalidRequest(f"{what} {name!r} is given twice: give it once")
        found[name] = value
    return found


def pair(what: str, text: str) -> tuple[str, str]:
    """Parse one NAME=VALUE pair. Raises InvalidRequest."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidRequest(f"{what} {text!r} must have the form NAME=VALUE")
    return name, value


def whole(name: str, value: str) -> int:
    """Parse a whole number. Raises InvalidRequest."""
    if not (value.isascii() and value.removeprefix("-").isdecimal() and len(value) <= 17):
        raise InvalidRequest(f"{name} must be a whole number, not {value[:80]!r}")
    return int(value)


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InvalidRequest(f"weight {name!r} must be a number, not {value[:80]!r}") from None


OlderThan = Annotated[
    int, seconds("--older-than", most=MAX_AGE_S, help="Only claims that were claimed longer ago, such as 7d.")
]
NewerThan = Annotated[
    int, seconds("--newer-than", most=MAX_AGE_S, help="Only claims that were claimed since, such as 15m.")
]
