"""`redsched api` and `agent`: one component alone, for deployments with a machine for each."""

import time
from typing import Annotated

import typer

from redsched.agent.collectors.base import load_collector
from redsched.agent.collectors.fleet import fleet as read_fleet
from redsched.agent.run import run as run_agent
from redsched.auth.authenticator import Authenticator
from redsched.cli.context import checked_url, settings_for
from redsched.cli.exposure import (
    BehindProxyOption,
    ExposureOptions,
    InsecureOption,
    TlsCaOption,
    TlsCertOption,
    TlsKeyOption,
)
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
TokenFileOption = Annotated[
    str,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File with the token for the API, which only its owner may read. Default: REDSCHED_TOKEN_FILE.",
        show_default=False,
    ),
]


def api(
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    workers: WorkersOption = 1,
    tls_cert: TlsCertOption = "",
    tls_key: TlsKeyOption = "",
    tls_ca: TlsCaOption = "",
    behind_proxy: BehindProxyOption = "",
    insecure: InsecureOption = False,
    url: Url = "",
) -> None:
    """Serve the REST API over a store until Ctrl-C."""
    exposure = ExposureOptions(tls_cert, tls_key, tls_ca, behind_proxy)
    settings = settings_for(url, is_service=True, given=exposure.settings())
    store = checked_url(settings)
    Authenticator.of(settings)  # only to check the token file
    with until_ended(), Workers(host, port, workers, settings=settings, insecure=insecure) as serving:
        serving.start({"REDSCHED_REDIS_URL": store, **exposure.environment()})
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
    api: Annotated[
        str,
        typer.Option(
            "--api",
            metavar="URL",
            help="URL of the API, for a host without access to the store. Default: REDSCHED_API.",
            show_default=False,
        ),
    ] = "",
    token_file: TokenFileOption = "",
    ca: Annotated[
        str,
        typer.Option(
            "--api-ca", metavar="FILE", help="Authorities of the API's certificate (PEM).", show_default=False
        ),
    ] = "",
    cert: Annotated[
        str, typer.Option("--api-cert", metavar="FILE", help="The agent's certificate (PEM).", show_default=False)
    ] = "",
    key: Annotated[
        str, typer.Option("--api-key", metavar="FILE", help="The key of that certificate (PEM).", show_default=False)
    ] = "",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow plain http to an API on another machine.")
    ] = False,
) -> None:
    """Run the agent of this machine until Ctrl-C: report the host and run its claims.

    With --fleet, it runs the agent of simulated hosts instead. With --api, it needs no access to the store.
    """
    given = {"api": api, "token_file": token_file, "api_ca": ca, "api_cert": cert, "api_key": key}
    chosen: dict[str, object] = {name: value for name, value in given.items() if value}
    if insecure:
        chosen["api_insecure"] = True
    settings = settings_for(url, is_service=True).model_copy(update=chosen)
    store = "" if settings.api else checked_url(settings)
    hosts = read_fleet(fleet, settings.lease_s) if fleet else [load_collector(collector, settings)]
    run_until_ended(run_agent(settings, store, hosts))
