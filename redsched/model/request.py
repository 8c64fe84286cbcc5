"""Requests: resources and their pools, location, affinity, count, and weights."""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from operator import attrgetter, is_
from typing import Annotated, Any, NamedTuple

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from redsched.errors import InvalidRequest
from redsched.model.claims import GangOnExit
from redsched.model.json_codec import Fields, as_text, from_text
from redsched.model.limits import MAX_COUNT, check_size
from redsched.model.readable import make_readable
from redsched.model.record import record
from redsched.model.request_fields import PlaceFields, RequestFields
from redsched.model.request_validation import check_asked, check_fields, check_not_spread, check_places, check_usual
from redsched.model.types import Name
from redsched.model.validation import check_name


@dataclass(frozen=True, slots=True)
class GangMember:
    """A kind of member of a gang: its name, and what each of its `count` places requests."""

    name: str
    request: "Request"

    def __post_init__(self) -> None:
        check_name("member", self.name)
        if self.request.members:
            raise InvalidRequest(f"member {self.name!r} has members itself: list all members side by side")
        if self.request.project:
            raise InvalidRequest(f"member {self.name!r} has a project: set the project of the request instead")
        if self.request.payload is not None:
            raise InvalidRequest(f"member {self.name!r} has a payload: set the payload of the request instead")
        if self.request.owner:
            raise InvalidRequest(f"member {self.name!r} has an owner: set the owner of the request instead")

    @property
    def count(self) -> int:
        """The number of places of this member."""
        return self.request.count

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that reads a member as JSON has it."""
        return core_schema.no_info_after_validator_function(cls._from_body, handler.generate_schema(MemberBody))

    @classmethod
    def _from_body(cls, body: "MemberBody") -> "GangMember":
        return cls(body.name, Request(**{one.name: getattr(body, one.name) for one in fields(PlaceFields)}))


@record
class MemberBody(PlaceFields):
    """One kind of member of a gang, as a body has it: the name beside the requirements."""

    name: Annotated[Name, Field(description="The member's name, shown as `member` in its selections.")] = field(
        kw_only=True
    )


class _Texts(NamedTuple):
    canonical: str
    digest: str


class _WithTexts(RequestFields):
    """Has a place for the texts of a request, which each claim reads several times. It is not a field."""

    __slots__ = ("_texts",)
    _texts: _Texts | None


@record
class Request(_WithTexts):
    """A placement request. Each of `count` places takes all of it from one host; all places are placed, or none.

    `resources` may each come from another pool of the host (the root first), each of `groups` from a single pool. In a
    gang, `members` hold the requests, and only fields that concern the whole call are set beside them. At least one of
    `resources`, `groups`, `numa`, `pci` and `members` is required.
    """

    members: Annotated[
        tuple[GangMember, ...],
        Field(max_length=MAX_COUNT, fail_fast=True, description="The members of a gang, each with its requirements."),
    ] = ()

    def __post_init__(self) -> None:
        self._texts = None
        if self.members:
            self._check_members()
        else:
            check_asked(self)
        if _is_usual(self):
            check_usual(self)
            return
        check_fields(self)
        check_places(self, self.places)

    @property
    def places(self) -> int:
        """The number of places requested, over all members."""
        return sum(one.count for one in self.members) if self.members else self.count

    def _check_members(self) -> None:
        for name in _PLACE_FIELDS:
            if getattr(self, name) != _DEFAULTS[name]:
                raise InvalidRequest(f"{name} cannot be combined with members: set it in each member that needs it")
        if self.reserve:
            raise InvalidRequest("reserve is for one place, and members are several: leave out reserve")
        for one in self.members if self.gang_on_exit is GangOnExit.REPLACE else ():
            check_not_spread(one.request)
        names = [one.name for one in self.members]
        check_size("members", names, MAX_COUNT)
        if len(set(names)) != len(names):
            raise InvalidRequest(f"members has a name twice: {', '.join(names)}: use a different name for each")
        for name in (name for relation in self.relations for name in relation.members):
            if name not in names:
                raise InvalidRequest(f"a relation names {name!r}, which is not a member: use {', '.join(names)}")

    def shape(self) -> str:
        """Return canonical JSON of all that a decision depends on: equal shapes have equal masks and scores."""
        return as_text(_SHAPE.of(self))

    def shape_key(self) -> Hashable:
        """Return a key that is equal for equal shapes, and for common requests much cheaper than their text."""
        if _RARE_VALUES(self) == _RARE_DEFAULTS:
            return frozenset(self.resources.items()), self.required, self.zones
        return self.shape()

    def canonical(self) -> str:
        """Return canonical JSON of what is requested and for whom, without ids and options of the call's answer."""
        texts = self._texts or _shared_texts(self)
        return texts.canonical if texts else as_text(self.json_fields())

    def json_fields(self) -> dict[str, Any]:
        """Return what `canonical` writes, as JSON values."""
        return _DIGEST.of(self)

    def digest(self) -> str:
        """Return 32 hex digits over the canonical text. A repeated call with the same id must have the same digest."""
        texts = self._texts or _shared_texts(self)
        return texts.digest if texts else _digest_of(self.canonical())

    def body(self) -> dict[str, Any]:
        """Return the request as the JSON body of a selection, without fields that have their default."""
        found = _BODY.of(self)
        if self.zones:
            found["zone"] = found.pop("zones")
        if self.pci:
            found["pci"] = [{"class": one.pop("resource_class"), **one} for one in found["pci"]]
        if self.members:
            found["members"] = [{"name": one.name, **one.request.body()} for one in self.members]
        return found

    @classmethod
    def from_canonical(cls, text: str) -> "Request":
        """Parse a canonical text into a request with the same digest. Raises InvalidRequest if it is malformed."""
        return from_text(text, cls, {"Request": cls})


# The owner is not part of the digest: all owners share the text of a request, and the script compares it on its own.
_OF_THE_ANSWER = frozenset(
    ("claim_ids", "claim", "alternates", "until", "queue_timeout_s", "reserve", "confirm_timeout_s", "owner")
)
_ALL_FIELDS = tuple(one.name for one in fields(Request))
# Properties of the call, not of a place: they affect neither which hosts fit nor their scores. The project may, where
# aggregates are reserved for projects: whoever caches shapes has to check.
_CALL_FIELDS = {*_ALL_FIELDS} - {one.name for one in fields(PlaceFields)} - {"policy", "weights"} | {"count"}
_DEFAULTS: Mapping[str, Any] = {
    one.name: one.default_factory() if callable(one.default_factory) else one.default for one in fields(Request)
}
_SHAPE_FIELDS = tuple(name for name in _ALL_FIELDS if name not in _CALL_FIELDS)
# With members, these fields must be set in the members; policy, weights and project of the call apply to its members
# too.
_PLACE_FIELDS = (*(n for n in _SHAPE_FIELDS if n not in {"policy", "weights"}), "count")
_SHAPE = Fields(_SHAPE_FIELDS, _DEFAULTS)
_BODY = Fields(_ALL_FIELDS, _DEFAULTS)
_DIGEST = Fields(tuple(name for name in _ALL_FIELDS if name not in _OF_THE_ANSWER), _DEFAULTS)


# Most requests set only these fields, with few different values. The values are hashable and each of one type, so that
# equal values have equal texts (weights are excluded, as they may be 1 or 1.0).
_USUAL_FIELDS = frozenset(("resources", "required", "zones", "project", "owner", "consumer", "lease_s"))
_RARE_FIELDS = tuple(name for name in _ALL_FIELDS if name not in _USUAL_FIELDS | _OF_THE_ANSWER)
_RARE_VALUES: Callable[[Request], tuple[Any, ...]] = attrgetter(*_RARE_FIELDS)
_RARE_DEFAULTS = tuple(_DEFAULTS[name] for name in _RARE_FIELDS)
_MAX_TEXTS = 4096
_texts: dict[tuple[Any, ...], _Texts] = {}

_MAPPINGS = ("labels", "aggregate_metadata", "properties", "weights")
"""Rare fields of which each request has a default of its own."""
_SCALARS = tuple(name for name in _ALL_FIELDS if name not in (*_USUAL_FIELDS, *_MAPPINGS))
_SCALAR_VALUES: Callable[[Request], tuple[Any, ...]] = attrgetter(*_SCALARS)
_SCALAR_DEFAULTS = tuple(_DEFAULTS[name] for name in _SCALARS)


def _is_usual(request: Request) -> bool:
    """Return whether a request sets usual fields only. True is equal to 1 but no valid count, so `is` has to hold."""
    is_plain = not (request.labels or request.aggregate_metadata or request.properties or request.weights)
    return is_plain and all(map(is_, _SCALAR_VALUES(request), _SCALAR_DEFAULTS))


def _shared_texts(request: Request) -> _Texts | None:
    """Return the texts of a common request, made once for all equal ones; None for one that sets other fields."""
    if _RARE_VALUES(request) != _RARE_DEFAULTS:
        return None
    resources = frozenset(request.resources.items())
    key = (resources, request.required, request.zones, request.project, request.consumer, request.lease_s)
    texts = _texts.get(key)
    if texts is None:
        if len(_texts) >= _MAX_TEXTS:
            _texts.clear()
        canonical = as_text(request.json_fields())
        texts = _texts[key] = _Texts(canonical, _digest_of(canonical))
    request._texts = texts
    return texts


def _digest_of(canonical: str) -> str:
    return hashlib.blake2b(canonical.encode(), digest_size=16).hexdigest()


make_readable(Request)
