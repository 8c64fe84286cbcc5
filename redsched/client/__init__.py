"""A client of the REST API for callers without access to the store, sync and async.

client.py         Client       calls.py      the table of calls: routes, bodies, types of replies
async_client.py   AsyncClient  exchange.py   one call with its retries, without input or output
base.py           what both have            changes.py    the stream of changes
results.py        types of results that only the client has
"""

from redsched.client.async_client import AsyncClient
from redsched.client.changes import ChangeEvent
from redsched.client.client import Client
from redsched.client.exchange import Call
from redsched.client.results import ClaimedPlace, ClaimedPlaces

__all__ = ["AsyncClient", "Call", "ChangeEvent", "ClaimedPlace", "ClaimedPlaces", "Client"]
