"""The four routes of a kind of declared object, generated from a table: list, get, put and delete."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response

from redsched.api import etags, responses
from redsched.api.openapi import BODY, answers, body
from redsched.api.request_body import read_large
from redsched.api.routes.common import caller, scheduler
from redsched.auth.caller import Caller
from redsched.errors import ClaimState, InvalidRequest, NotFound, OutcomeUnknown, PreconditionFailed, RedschedError
from redsched.model.validation import NAME_PATTERN
from redsched.scheduler import IfMatch, Scheduler
from redsched.scheduler.declared.service import DeclaredService
from redsched.schema.pages import PageOf
from redsched.schema.requests.queries import ForgetQuery, PageQuery

Errors = tuple[type[RedschedError], ...]
View = TypeVar("View")
Body = TypeVar("Body")


@dataclass(frozen=True, kw_only=True)
class DeclaredKind(Generic[View, Body]):
    """A kind of declared object: its names, its schemas, and its service in the scheduler.

    `path` is the plural in the URL, `parameter` the name's path parameter. `put` declares what was read from a body,
    under a condition, and returns it with whether it is new.
    """

    path: str
    singular: str
    parameter: str = "name"
    example: str
    service: Callable[[Scheduler], DeclaredService[View]]
    put: Callable[[Scheduler, Body, IfMatch], Awaitable[tuple[View, bool]]]
    body: type[Body]
    record: type[View]
    page: PageOf[View]
    examples: Mapping[str, Any]
    visible: Callable[[Caller], Collection[str] | None] = lambda _: None
    """The names of the objects that a caller may know; None for all."""
    forced: bool = True
    """Whether deleting an object that is in use is refused, unless forced."""
    list_doc: str
    get_doc: str
    put_doc: str
    delete_doc: str
    list_errors: Errors = ()
    put_errors: Errors = ()

    @property
    def slug(self) -> str:
        """The plural as an identifier: `server_groups`."""
        return self.path.replace("-", "_")

    @property
    def a_thing(self) -> str:
        """The singular with its article."""
        return f"{'an' if self.singular[0] in 'aeiou' else 'a'} {self.singular}"


def add_routes(router: APIRouter, kind: DeclaredKind[Any, Any]) -> None:
    """Add the four routes of a kind to a router."""
    _add_list(router, kind)
    _add_get(router, kind)
    _add_put(router, kind)
    _add_delete(router, kind)


def _add_list(router: APIRouter, kind: DeclaredKind[Any, Any]) -> None:
    async def list_things(request: Request, query: Annotated[PageQuery, Query()]) -> Response:
        only = kind.visible(caller(request))
        page = await kind.service(scheduler(request)).list(**query.model_dump(), only=only)
        return responses.listed(kind.page, page)

    router.add_api_route(
        f"/{kind.path}",
        list_things,
        methods=["GET"],
        name=f"list_{kind.slug}",
        summary=f"List {kind.path.replace('-', ' ')}",
        description=kind.list_doc,
        responses=answers({200: kind.page.type}, InvalidRequest, *kind.list_errors),
    )


def _add_get(router: APIRouter, kind: DeclaredKind[Any, Any]) -> None:
    async def get_thing(request: Request, name: _name_of(kind)) -> Response:  # type: ignore[valid-type]
        service, only = kind.service(scheduler(request)), kind.visible(caller(request))
        if only is not None and name not in only:
            await service.refuse_unknown(name)
        headers = await etags.etag_of(service, name)
        return responses.answered(await service.get(name), headers=headers)

    router.add_api_route(
        _path(kind),
        get_thing,
        methods=["GET"],
        name=f"get_{_singular(kind)}",
        summary=f"Get {kind.a_thing}",
        description=kind.get_doc,
        responses=answers({200: kind.record}, InvalidRequest, NotFound, *kind.list_errors, etag=True),
    )


def _add_put(router: APIRouter, kind: DeclaredKind[Any, Any]) -> None:
    async def put_thing(request: Request, name: _name_of(kind)) -> Response:  # type: ignore[valid-type]
        asked = await read_large(request, kind.body, name)
        known = scheduler(request)
        service = kind.service(known)
        _, new = await kind.put(known, asked, etags.condition(request))
        headers = await etags.etag_of(service, name)
        found = await service.get(name)
        if not new:
            return responses.answered(found, 200, headers)
        return responses.answered(found, 201, {"Location": request.url.path, **headers})

    errors: Errors = (*BODY, *kind.put_errors, OutcomeUnknown, PreconditionFailed)
    router.add_api_route(
        _path(kind),
        put_thing,
        methods=["PUT"],
        name=f"put_{_singular(kind)}",
        summary=f"Declare {kind.a_thing}",
        description=kind.put_doc,
        dependencies=[etags.IF_EITHER],
        responses=answers({200: kind.record, 201: kind.record}, *errors, etag=True),
        openapi_extra=body(kind.body, kind.examples),
    )


def _add_delete(router: APIRouter, kind: DeclaredKind[Any, Any]) -> None:
    async def forget(request: Request, name: str, force: bool) -> Response:
        await kind.service(scheduler(request)).delete(name, force, etags.if_match(request))
        return responses.nothing()

    async def delete_thing(request: Request, name: _name_of(kind)) -> Response:  # type: ignore[valid-type]
        return await forget(request, name, True)

    async def delete_unused(
        request: Request,
        name: _name_of(kind),  # type: ignore[valid-type]
        query: Annotated[ForgetQuery, Query()],
    ) -> Response:
        return await forget(request, name, query.force)

    in_use: Errors = (ClaimState,) if kind.forced else ()
    router.add_api_route(
        _path(kind),
        delete_unused if kind.forced else delete_thing,
        methods=["DELETE"],
        status_code=204,
        name=f"delete_{_singular(kind)}",
        summary=f"Delete {kind.a_thing}",
        description=kind.delete_doc,
        dependencies=[etags.IF_MATCH],
        responses=answers({204: None}, InvalidRequest, NotFound, *in_use, OutcomeUnknown, PreconditionFailed),
    )


def _name_of(kind: DeclaredKind[Any, Any]) -> Any:
    return Annotated[str, Path(alias=kind.parameter, pattern=NAME_PATTERN, examples=[kind.example])]


def _path(kind: DeclaredKind[Any, Any]) -> str:
    return f"/{kind.path}/{{{kind.parameter}}}"


def _singular(kind: DeclaredKind[Any, Any]) -> str:
    return kind.singular.replace(" ", "_")
