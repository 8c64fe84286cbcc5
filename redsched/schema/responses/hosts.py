"""Responses about hosts, their heartbeats and inboxes."""

from typing import Literal

from redsched.schema.answer import Answer
from redsched.store.codec.results import InboxEntry


class HeartbeatAnswer(Answer):
    """OK, or NOT_ATTESTED: the store is in a new epoch; send a report that attests to it."""

    outcome: Literal["OK", "NOT_ATTESTED"]


class InboxAnswer(Answer):
    """The pending notifications for the host's agent."""

    entries: list[InboxEntry]
