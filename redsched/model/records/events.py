"""Events of the log: what happened to claims, hosts and declared objects, and who caused it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired

from pydantic import ConfigDict, PlainSerializer, PlainValidator, with_config
from typing_extensions import TypedDict

from redsched.model.claims import Amounts
from redsched.model.record import adapter


@dataclass(frozen=True, slots=True)
class Event:
    """An event: what happened (`kind`), when (Unix ms), and the `seq` of the change of the cell that caused it.

    `slots` has the amounts that the claim concerned holds. `facts` has further fields by name, each only if it applies;
    docs/events.md lists them. Those that most events have are properties: '' if an event has none.
    """

    id: str
    cell: str
    at_ms: int
    seq: int
    kind: str
    slots: Amounts = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def claim(self) -> str:
        """The claim."""
        return self.facts.get("claim", "")

    @property
    def host(self) -> str:
        """The host, or that of the claim's placement."""
        return self.facts.get("host", "")

    @property
    def project(self) -> str:
        """The project of the claim."""
        return self.facts.get("project", "")

    @property
    def consumer(self) -> str:
        """The consumer of the claim."""
        return self.facts.get("consumer", "")

    @property
    def gang(self) -> str:
        """The gang that the claim was made with."""
        return self.facts.get("gang", "")

    @property
    def end_reason(self) -> str:
        """Why its placement on the host ends or has ended."""
        return self.facts.get("end_reason", "")

    @property
    def reason(self) -> str:
        """Details of that as text: an exit code, the last output of a hook."""
        return self.facts.get("reason", "")

    @property
    def status(self) -> str:
        """Of kind `status`: what an operator set on the host."""
        return self.facts.get("status", "")

    @property
    def thing(self) -> str:
        """Of kinds `declared` and `removed`: `server-group:web`."""
        return self.facts.get("thing", "")

    @property
    def actor(self) -> str:
        """Who caused it."""
        return self.facts.get("actor", "")

    @property
    def request_id(self) -> str:
        """The request that caused it."""
        return self.facts.get("request_id", "")

    @property
    def changes(self) -> int:
        """Of kind `missing`: how many changes were not recorded."""
        return int(self.facts.get("changes", 0))

    def members(self) -> dict[str, Any]:
        """Return the event as JSON shows it: its facts are members beside the others."""
        head = {"id": self.id, "cell": self.cell, "at_ms": self.at_ms, "seq": self.seq, "kind": self.kind}
        return {**head, **self.facts, **({"slots": dict(self.slots)} if self.slots else {})}


@with_config(ConfigDict(extra="allow"))
class EventMembers(TypedDict):
    """An event: its kind, its time, the change of the cell that caused it (`seq`), and further fields."""

    id: str
    cell: str
    at_ms: int
    seq: int
    kind: str
    slots: NotRequired[Amounts]


def _event(members: Any) -> Event:
    """Return the event that JSON shows so. Raises ValueError."""
    given = dict(adapter(EventMembers).validate_python(members))
    head = {name: given.pop(name) for name in ("id", "cell", "at_ms", "seq", "kind")}
    slots = given.pop("slots", {})
    return Event(**head, slots=slots, facts={name: str(value) for name, value in given.items()})


EventJson = Annotated[
    Event,
    PlainValidator(_event, json_schema_input_type=EventMembers),
    PlainSerializer(Event.members, return_type=EventMembers),
]
"""An event in JSON."""
