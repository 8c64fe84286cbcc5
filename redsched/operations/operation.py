"""An operation: how it is called in Python, its route, and how a call of it becomes a request and its reply a result.

The same declarations are methods of several classes: of `Part[Async]` as coroutines, of `Part[Blocking]` as functions
that block. What carries them out is the link of the part: a client of the REST API, or a scheduler on its own loop.
"""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload
from urllib.parse import quote

from pydantic_core import to_jsonable_python

from redsched.errors import StoreUnavailable
from redsched.model import Request
from redsched.model.conditions import Existence, IfMatch
from redsched.model.readable import Shown, shown_signature, shown_type
from redsched.model.record import adapter
from redsched.model.records.pages import PageOf
from redsched.model.validation import check_name
from redsched.operations.route import Route

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Mode = TypeVar("Mode")

IF_MATCH = "if_match"
"""The parameter that goes into headers."""


class Async:
    """The mode of parts whose methods are coroutines."""


class Blocking:
    """The mode of parts whose methods block."""


class Reply(Protocol):
    """A successful reply, as the client of HTTP has it."""

    @property
    def status_code(self) -> int: ...  # noqa: D102
    @property
    def content(self) -> bytes: ...  # noqa: D102
    @property
    def headers(self) -> Mapping[str, str]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Sent:
    """What a call sends: the names in its path, its query, its body. `waits_s`: how long its reply may wait."""

    names: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    waits_s: float = 0.0


Arguments = Mapping[str, Any]
"""The arguments of a call by name, with all defaults."""


class Link(Protocol):
    """What carries operations out. `blocks`: whether that returns the result, or the coroutine that does."""

    blocks: bool

    def carry_out(self, operation: "BaseOperation[Any, Any]", arguments: Arguments) -> Any: ...  # noqa: D102


class Part(Generic[Mode]):
    """A group of operations. `group`: its name as an attribute of a fleet."""

    group: ClassVar[str] = ""

    def __init__(self, link: Link) -> None:
        self._link = link


class BaseOperation(Generic[P, R]):
    """An operation, or a list: what both have."""

    def __init__(
        self,
        function: Callable[Concatenate[Any, P], R],
        route: Route,
        sends: Callable[[Arguments], Sent] | None = None,
        reads: Callable[[Reply], R] | None = None,
    ) -> None:
        """`function` has its signature and its text. `sends`, `reads`: in place of what the route says."""
        self.route, self._function, self._sends, self._reads = route, function, sends, reads
        self.name = self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__qualname__ = function.__qualname__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        group = getattr(owner, "group", "")
        self.name = f"{group}.{name}" if group else name

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise TypeError: it is a method of objects."""
        raise TypeError("this is a method of a client: open one")

    @cached_property
    def __signature__(self) -> inspect.Signature:
        own = shown_signature(self._function, self._shown_result)
        first, *rest = own.parameters.values()
        return own.replace(parameters=[first.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD), *rest])

    @cached_property
    def signature(self) -> inspect.Signature:
        """Its parameters without `self`, and the type of its result."""
        own = inspect.signature(self._function)
        return own.replace(parameters=list(own.parameters.values())[1:])

    def arguments(self, *args: Any, **named: Any) -> Arguments:
        """Return the arguments of a call by name. Raises TypeError for others than it has."""
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        # What can be read only once is needed again for the next page, and for a repetition.
        return {name: tuple(one) if isinstance(one, Iterator) else one for name, one in bound.arguments.items()}

    def on(self, fleet: Any) -> Callable[..., Any]:
        """Return the method of this name of a fleet, such as a `Scheduler`."""
        for name in self.name.split("."):
            fleet = getattr(fleet, name)
        return cast("Callable[..., Any]", fleet)

    def sent(self, arguments: Arguments) -> Sent:
        """Return what a call sends. Raises InvalidRequest for a name that no object can have."""
        return self._by_route(arguments) if self._sends is None else self._sends(arguments)

    def read(self, reply: Reply) -> R:
        """Return the result in a reply. Raises ValueError if it is none."""
        if self._reads is not None:
            return self._reads(reply)
        answer = next(iter(self.route.answers.values()))
        return cast("R", None if answer is None else read_record(answer, reply.content))

    def path(self, names: Mapping[str, str]) -> str:
        """Return the path with these names. Raises InvalidRequest for a name that no object can have."""
        path = self.route.path
        for name, value in names.items():
            checked = check_name(_NAMED[path.split("/")[2]], value)
            path = path.replace(f"{{{name}}}", quote(checked))
        return path

    def _by_route(self, arguments: Arguments) -> Sent:
        """Return what a call sends: names in the path, `in_query` or all else in the query, the rest in the body."""
        route = self.route
        names = {name: value for name, value in arguments.items() if f"{{{name}}}" in route.path}
        rest = {name: value for name, value in arguments.items() if name not in names and name != IF_MATCH}
        in_query = {name: rest[name] for name in (route.in_query if route.body else rest)}
        defaults = {name: one.default for name, one in self.signature.parameters.items()}
        asked = {name: value for name, value in in_query.items() if value != defaults[name] or name == "limit"}
        body = None
        if route.body:
            given = {name: value for name, value in rest.items() if name not in in_query}
            if not route.body_is_optional or any(value != defaults[name] for name, value in given.items()):
                body = {name: json_value(value) for name, value in given.items() if value is not None}
        waits_s = float(arguments.get("queue_timeout_s", 0))
        return Sent(names, pairs(asked), body, headers_of(arguments.get(IF_MATCH)), waits_s)

    def _described(self, method: Callable[..., Any]) -> Callable[..., Any]:
        described: Any = method
        described.__name__, described.__qualname__, described.__doc__ = self.__name__, self.__qualname__, self.__doc__
        parameters = list(self.__signature__.parameters.values())[1:]
        described.__signature__ = self.__signature__.replace(parameters=parameters)
        return method

    def _shown_result(self, annotation: Any) -> Any:
        return shown_type(annotation)


class Operation(BaseOperation[P, R]):
    """An operation. As an attribute of a part it is a method that carries it out."""

    @overload
    def __get__(self, part: None, owner: type[Any]) -> "Operation[P, R]": ...
    @overload
    def __get__(self, part: Part[Async], owner: type[Any]) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, part: Part[Blocking], owner: type[Any]) -> Callable[P, R]: ...
    def __get__(self, part: Part[Any] | None, owner: type[Any]) -> Any:
        if part is None:
            return self
        link = part._link

        def method(*args: Any, **named: Any) -> Any:
            return link.carry_out(self, self.arguments(*args, **named))

        return self._described(method)


class Listing(BaseOperation[P, R], Generic[P, R, T]):
    """An operation that returns a page of a list of T. As a method it returns the list, which reads pages as needed."""

    def __init__(
        self,
        item: type[T],
        function: Callable[Concatenate[Any, P], R],
        route: Route,
        sends: Callable[[Arguments], Sent] | None = None,
        reads: Callable[[Reply], R] | None = None,
    ) -> None:
        """`item`: what the list is of. The rest is as in `Operation`."""
        super().__init__(function, route, sends, reads)
        self.item = item

    @overload
    def __get__(self, part: None, owner: type[Any]) -> "Listing[P, R, T]": ...
    @overload
    def __get__(self, part: Part[Async], owner: type[Any]) -> "Callable[P, AsyncList[R, T]]": ...
    @overload
    def __get__(self, part: Part[Blocking], owner: type[Any]) -> "Callable[P, BlockingList[R, T]]": ...
    def __get__(self, part: Part[Any] | None, owner: type[Any]) -> Any:
        if part is None:
            return self
        kind = BlockingList if part._link.blocks else AsyncList

        def method(*args: Any, **named: Any) -> Any:
            return kind(part._link, self, self.arguments(*args, **named))

        return self._described(method)

    def _shown_result(self, _: Any) -> Any:
        return Shown(f"Listing[{self.item.__name__}]")


class AsyncList(Generic[R, T]):
    """A list. Iterating over it reads all pages from `after` on; awaiting it reads one, of at most `limit` items."""

    def __init__(self, link: Link, listing: "Listing[Any, R, T]", arguments: Arguments) -> None:
        self._link, self._listing, self._arguments = link, listing, arguments

    def __await__(self) -> Generator[Any, Any, R]:
        page: Awaitable[R] = self._link.carry_out(self._listing, self._arguments)
        return page.__await__()

    async def __aiter__(self) -> AsyncIterator[T]:
        after: str | None = self._arguments["after"]
        while after is not None:
            page: Any = await self._link.carry_out(self._listing, {**self._arguments, "after": after})
            for one in page.items:
                yield one
            after = page.next


class BlockingList(Generic[R, T]):
    """A list. Iterating over it reads all pages from `after` on; `page` reads one, of at most `limit` items."""

    def __init__(self, link: Link, listing: "Listing[Any, R, T]", arguments: Arguments) -> None:
        self._link, self._listing, self._arguments = link, listing, arguments

    def page(self) -> R:
        """Return one page, which begins after `after`."""
        found: R = self._link.carry_out(self._listing, self._arguments)
        return found

    def __iter__(self) -> Iterator[T]:
        after: str | None = self._arguments["after"]
        while after is not None:
            page: Any = self._link.carry_out(self._listing, {**self._arguments, "after": after})
            yield from page.items
            after = page.next


def operation(
    route: Route, *, sends: Callable[[Arguments], Sent] | None = None, reads: Callable[[Reply], Any] | None = None
) -> Callable[[Callable[Concatenate[Any, P], R]], Operation[P, R]]:
    """Return the decorator that makes a function with a signature and a text, and no body, an operation."""
    return lambda function: Operation(function, route, sends, reads)


def listing(
    item: type[T],
    route: Route,
    *,
    sends: Callable[[Arguments], Sent] | None = None,
    reads: Callable[[Reply], Any] | None = None,
) -> Callable[[Callable[Concatenate[Any, P], R]], Listing[P, R, T]]:
    """Return the decorator that makes such a function a list of `item`."""
    return lambda function: Listing(item, function, route, sends, reads)


def query(**given: Any) -> tuple[tuple[str, str], ...]:
    """Return query parameters. None, '', 0 (but as a limit or a lease), () and a flag that is not set are none."""
    return pairs({name: value for name, value in given.items() if value or name in _NEVER_0})


def pairs(given: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return query parameters, each as often as it has values."""
    return tuple((name, one) for name, value in given.items() for one in _texts(value))


def _texts(value: Any) -> Iterable[str]:
    if value is None:
        return ()
    if isinstance(value, bool):
        return (str(value).lower(),)
    if isinstance(value, Mapping):
        return [f"{name}={amount}" for name, amount in value.items()]
    return (str(value),) if isinstance(value, str | int) else [str(one) for one in value]


def json_value(value: Any) -> Any:
    """Return a value of a body in JSON: a request as its body, another object without what it lacks, names sorted."""
    if isinstance(value, Request):
        return value.body()
    if is_dataclass(value) and not isinstance(value, type):
        value = {one.name: _in_order(getattr(value, one.name)) for one in fields(value)}
    return to_jsonable_python(value, exclude_none=True)


def _in_order(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def headers_of(if_match: IfMatch) -> dict[str, str]:
    """Return the headers of a conditional write."""
    match if_match:
        case None:
            return {}
        case Existence.ABSENT:
            return {"If-None-Match": "*"}
        case Existence.EXISTS:
            return {"If-Match": "*"}
        case str():
            return {"If-Match": f'"{if_match}"'}
        case tags:
            return {"If-Match": ", ".join(f'"{tag}"' for tag in tags)}


def asks_tag(arguments: Arguments) -> Sent:
    """Return the call that asks for the ETag of an object: its first argument names it, the others are parameters."""
    (parameter, name), *others = arguments.items()
    # A proxy that compresses a reply changes its tag.
    return Sent({parameter: name}, query(**dict(others)), headers={"Accept-Encoding": "identity"})


def tag_of(reply: Reply) -> str:
    """Return the tag of an object. Raises StoreUnavailable if the reply has none."""
    tag = reply.headers.get("ETag", "")
    if not _TAG.fullmatch(tag):
        found = f"the ETag {tag[:100]}" if tag else "no ETag"
        raise StoreUnavailable(f"the reply has {found}: a proxy has changed it; turn off its compression")
    return tag.strip('"')


def read_record(kind: Any, text: bytes) -> Any:
    """Return a record, or a page of records, of a response. Fields of a newer API are ignored. Raises ValueError."""
    if isinstance(kind, PageOf):
        return kind.read(text)
    return adapter(kind).validate_json(text, extra="ignore")


_NEVER_0 = ("limit", "lease_s")
_TAG = re.compile(r'"[^"]+"')
_NAMED = {
    "hosts": "host",
    "claims": "claim id",
    "aggregates": "aggregate",
    "server-groups": "server group",
    "shared-pools": "pool",
    "quotas": "project",
}
"""What errors call the name of an object, where it has a term of its own."""
