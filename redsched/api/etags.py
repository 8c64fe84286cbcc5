"""ETags of what operators declare, and If-Match: nobody overwrites what somebody else has changed meanwhile.

A tag is a digest of what operators declare alone: amounts claimed, members and reports do not change it. It is compared
just before the change is made, not in the same script.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Protocol, TypeVar

from fastapi import Depends, Header, Request
from pydantic_core import to_json

from redsched.api.problems import PreconditionFailed
from redsched.api.routes.common import scheduler
from redsched.errors import NotFound
from redsched.scheduler import AggregateView, HostView, QuotaView, Scheduler, ServerGroupView, SharedPoolView
from redsched.schema import declarations

View = TypeVar("View")
_View_co = TypeVar("_View_co", covariant=True)

_TAG = r'(W/)?"[!#-~]{0,100}"'
IfMatch = Annotated[
    str,
    Header(
        alias="If-Match",
        pattern=rf"^(\*|{_TAG}( *, *{_TAG}){{0,9}})?$",
        description="Go on only if this is (still) its ETag; `*`: if it is there at all.",
        examples=['"5d41402abc4b2a76"'],
    ),
]


async def _declared(if_match: IfMatch = "") -> None:
    """Check the form of the header. What it says is checked when the rest of the request has been: RFC 9110, 13.2.1."""


IF_MATCH = Depends(_declared)
"""The dependency of routes that heed If-Match: each calls `Tagged.check` before it changes anything."""


class Reader(Protocol[_View_co]):
    """Where things of a kind are read by their names."""

    def get(self, name: str, /) -> Awaitable[_View_co]: ...  # noqa: D102


@dataclass(frozen=True)
class Tagged(Generic[View]):
    """A kind of thing that has ETags."""

    reader: Callable[[Scheduler], Reader[View]]
    declared: Callable[[View], Mapping[str, Any]]

    def header(self, view: View) -> dict[str, str]:
        """Return the header that tells the thing's tag."""
        return {"ETag": self._tag(view)}

    async def check(self, request: Request, name: str) -> None:
        """Raise PreconditionFailed where If-Match says another tag. To be called last: other refusals come first."""
        if_match = request.headers.get("if-match")
        if not if_match:
            return
        try:
            tag = self._tag(await self.reader(scheduler(request)).get(name))
        except NotFound:
            raise PreconditionFailed(f"there is no {name!r}: If-Match asks for one that is there") from None
        if if_match != "*" and tag not in (one.strip() for one in if_match.split(",")):
            raise PreconditionFailed(
                f"{name!r} has the ETag {tag}, not {if_match}: it has been changed meanwhile, read it again"
            )

    def _tag(self, view: View) -> str:
        text = to_json(self.declared(view), inf_nan_mode="constants")
        return f'"{hashlib.blake2b(text, digest_size=8).hexdigest()}"'


def _operator_fields(host: HostView) -> dict[str, Any]:
    return {
        "status": host.status,
        "draining": host.draining,
        "drain_deadline_ms": host.drain_deadline_ms,
        "drain_then": host.drain_then,
        "written_off": host.written_off,
    }


def _aggregate(view: AggregateView) -> dict[str, Any]:
    return {"metadata": sorted(view.metadata.items()), "hosts": sorted(view.hosts)}


def _quota(view: QuotaView) -> dict[str, Any]:
    return {"limits": sorted(view.limits.items())}


AGGREGATES = Tagged[AggregateView](lambda known: known.aggregates, _aggregate)
SERVER_GROUPS = Tagged[ServerGroupView](lambda known: known.server_groups, declarations.server_group_of)
SHARED_POOLS = Tagged[SharedPoolView](lambda known: known.pools, declarations.shared_pool_of)
QUOTAS = Tagged[QuotaView](lambda known: known.quotas, _quota)
HOSTS = Tagged[HostView](lambda known: known.hosts, _operator_fields)
