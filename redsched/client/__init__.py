"""A client of the REST API for callers without access to the store, sync and async.

client.py         Client           calls.py           calls of everybody: routes, bodies, types of replies
async_client.py   AsyncClient      operator_calls.py  calls of operators
base.py           what both have   call_parts.py      paths, queries, and lists page by page
results.py        results that     exchange.py        one call with its retries, without input or output
                  only it has      changes.py         the stream of changes
methods.py        what `help()`    following.py       one claim, read again and again
                  shows of calls
"""

from redsched.client.async_client import AsyncClient
from redsched.client.changes import ChangeEvent
from redsched.client.client import Client
from redsched.client.exchange import Call
from redsched.client.results import Event
from redsched.model.records.selections import ClaimedPlace, ClaimedPlaces

__all__ = ["AsyncClient", "Call", "ChangeEvent", "ClaimedPlace", "ClaimedPlaces", "Client", "Event"]
