"""Results whose fields are known better than those of the API's responses."""

from typing import Annotated

from pydantic import Field

from redsched.schema.answer import Answer
from redsched.schema.responses import EventAnswer


class Event(EventAnswer):
    """An event of the log: what happened (`kind`), when (`at_ms`), and to what. What an event does not have is empty.

    docs/events.md describes the kinds and the fields.
    """

    claim: Annotated[str, Field(description="The claim.")] = ""
    host: Annotated[str, Field(description="The host, or that of the claim's placement.")] = ""
    project: Annotated[str, Field(description="Of the claim.")] = ""
    consumer: Annotated[str, Field(description="Of the claim.")] = ""
    gang: Annotated[str, Field(description="The gang that the claim was made with.")] = ""
    end_reason: Annotated[str, Field(description="Why its placement on the host ends or has ended.")] = ""
    reason: Annotated[str, Field(description="Details of that as text: an exit code, the last output of a hook.")] = ""
    status: Annotated[str, Field(description="Of kind `status`: what an operator set on the host.")] = ""
    thing: Annotated[str, Field(description="Of kinds `declared` and `removed`: `server-group:web`.")] = ""
    actor: Annotated[str, Field(description="Who caused it.")] = ""
    request_id: Annotated[str, Field(description="The request that caused it.")] = ""
    changes: Annotated[int, Field(description="Of kind `missing`: how many changes were not recorded.")] = 0


class EventPage(Answer):
    """A page of events."""

    events: list[Event]
    next: str | None
