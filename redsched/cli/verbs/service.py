"""`redsched api` and `agent`: one component alone, for deployments with a machine for each."""

import time
from typing import Annotated

import typer

from redsched.agent.collectors.base import load_collector
from redsched.agent.collectors.fleet import fleet as read_fleet
from redsched.agent.run import run as run_agent
from redsched.auth.authenticator import Authenticator
from redsched.cli.context import checked_url, settings_for
from redsched.cli.options import Url
from redsched.cli.shutdown import run_until_ended, until_ended
from redsched.server.supervisor import Workers

LOOK_EVERY_S = 0.2

HostOption = Annotated[str, typer.Option("--host", help="Address to listen on.")]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port to listen on; 0: any free port.")]
WorkersOption = Annotated[
    int, typer.Option("--workers", min=1, max=256, help="Number of API processes, which share the port.")
]
FleetOption = Annotated[
    str,
    typer.Option("--fleet", metavar="FILE|N", help="Simulated hosts: a fleet file or a number.", show_default=False),
]


def api(host: HostOption = "127.0.0.1", port: PortOption = 8080, workers: WorkersOption = 1, url: Url = "") -> None:
    """Serve the REST API over a store until Ctrl-C."""
    settings = settings_for(url, is_service=True)
    environment = {"REDSCHED_REDIS_URL": checked_url(settings)}
    Authenticator.of(settings)  # only to check the token file
    with until_ended(), Workers(host, port, workers) as serving:
        serving.start(environment)
        print(f"the API listens on {serving.url}, its documentation is at {serving.url}/docs", flush=True)
        while True:
            serving.revive()
            time.sleep(LOOK_EVERY_S)


def agent(
    fleet: FleetOption = "",
    collector: Annotated[
        str, typer.Option("--collector", help="Collector of the host's data: machine, or an installed one.")
    ] = "machine",
    url: Url = "",
) -> None:
    """Run the agent of this machine until Ctrl-C: report the host and run its claims.

    With --fleet, it runs the agent of simulated hosts instead.
    """
    settings = settings_for(url, is_service=True)
    store = checked_url(settings)
    hosts = read_fleet(fleet) if fleet else [load_collector(collector, settings)]
    run_until_ended(run_agent(settings, store, hosts))
