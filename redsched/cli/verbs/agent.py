"""`redsched agent`: the agent alone, for deployments with a machine for each component."""

import asyncio
from typing import Annotated

import typer

from redsched.agent.collectors.base import load_collector
from redsched.agent.collectors.fleet import fleet as read_fleet
from redsched.agent.forget import forget_device
from redsched.agent.run import run as run_agent
from redsched.cli.fleet import settings_for, store_url
from redsched.cli.options import Url
from redsched.cli.output import tables
from redsched.cli.running import run_until_ended

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
    forget: Annotated[
        str,
        typer.Option(
            "--forget-device",
            metavar="POOL",
            help="Only forget the device of a pool that was replaced for good: another one may get the pool's name.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Run the agent of this machine until Ctrl-C: report the host and run its claims.

    With --fleet, it runs the agent of simulated hosts instead. With --api, it needs no access to the store.
    """
    given = {"api": api, "token_file": token_file, "api_ca": ca, "api_cert": cert, "api_key": key}
    chosen: dict[str, object] = {name: value for name, value in given.items() if value}
    if insecure:
        chosen["api_insecure"] = True
    settings = settings_for(url, is_service=True).model_copy(update=chosen)
    hosts = read_fleet(fleet, settings.lease_s) if fleet else [load_collector(collector, settings)]
    if forget:
        tables.say(f"pool {forget} is not device {asyncio.run(forget_device(settings, hosts, forget))} any more")
        return
    store = "" if settings.api else store_url(settings)
    run_until_ended(run_agent(settings, store, hosts))
