"""How the routes of hosts are handled."""

from fastapi import Request, Response

from redsched.api import etags, responses
from redsched.api.access.redact import Redactor
from redsched.api.operations import Call, handles
from redsched.api.routes.common import scheduler
from redsched.model.records import pages
from redsched.model.records.service import Accepted
from redsched.operations.hosts import Hosts


@handles(Hosts.list)
async def list_hosts(request: Request, call: Call) -> Response:
    """Answer with a page of hosts."""
    return responses.listed(pages.HOSTS, await scheduler(request).hosts.list(**call.query.filters()))


@handles(Hosts.get)
async def get_host(request: Request, call: Call) -> Response:
    """Answer with a host and its ETag."""
    hosts = scheduler(request).hosts
    headers = etags.header_of(await hosts.tag(**call.arguments))
    return responses.answered(Redactor(request).host(await hosts.get(**call.arguments)), headers=headers)


@handles(Hosts.drain_progress)
async def get_drain(request: Request, call: Call) -> Response:
    """Answer with what is left to be moved off a host."""
    found = await scheduler(request).hosts.get(**call.arguments)
    return responses.answered(Redactor(request).host(found).drain)


@handles(Hosts.drain, Hosts.enable, Hosts.disable, Hosts.write_off, Hosts.remove)
async def change_host(request: Request, call: Call) -> Response:
    """Answer with nothing, or with where to see how the claims are moved off the host."""
    await call.do(request)
    given = call.arguments
    if not given.get("move") and not given.get("evacuate"):
        return responses.nothing()
    cell = given["cell"]
    return responses.accepted(Accepted(f"/v1/hosts/{given['host']}/drain{f'?cell={cell}' if cell else ''}"))
