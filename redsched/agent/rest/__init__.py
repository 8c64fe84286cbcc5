"""Agents without access to the store: the link to it over the REST API.

    client.py      requests with the token, and errors as the store's      endpoint.py   the URL, TLS, the token file
    link.py        the calls of an agent as routes                         wire.py       replies as plain data
    heartbeats.py  one request for all hosts that are due                  watcher.py    waiting for notifications

It needs httpx, from the extra `redsched[rest]`, which is imported when an agent connects.
"""

from redsched.agent.rest.link import RestLink

__all__ = ["RestLink"]
