"""Agents without access to the store: the link to it over the REST API.

    client.py      requests with the token, and errors as the store's
    heartbeats.py  one request for all hosts that are due
    link.py        each call as a request, and waiting for notifications

httpx is imported when an agent connects.
"""

from redsched.agent.rest.link import RestLink

__all__ = ["RestLink"]
