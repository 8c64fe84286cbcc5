"""A client of the REST API for callers without access to the store, sync and async.

client.py         Client           base.py        what both have
async_client.py   AsyncClient      exchange.py    one call with its retries, without input or output
changes.py        the stream of    following.py   one claim, or the log of events, read again and again
                  changes

Their methods are the operations of `redsched.operations`.
"""

from redsched.client.async_client import AsyncClient
from redsched.client.changes import ChangeEvent
from redsched.client.client import Client
from redsched.client.exchange import Call
from redsched.model.records.events import Event
from redsched.model.records.selections import ClaimedPlace, ClaimedPlaces

__all__ = ["AsyncClient", "Call", "ChangeEvent", "ClaimedPlace", "ClaimedPlaces", "Client", "Event"]
