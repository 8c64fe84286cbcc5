"""`redsched up`: everything on this machine, in one command. redsched/cli/up/stack.py runs the processes."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from redsched.cli.exposure import (
    BehindProxyOption,
    ExposureOptions,
    InsecureOption,
    TlsCaOption,
    TlsCertOption,
    TlsKeyOption,
)
from redsched.cli.fleet import settings_for
from redsched.cli.output.progress import shown
from redsched.cli.running import until_ended
from redsched.cli.up import readiness, summary
from redsched.cli.up.stack import LocalStack, StackOptions
from redsched.cli.verbs.agent import FleetOption
from redsched.cli.verbs.api import LOOK_EVERY_S, HostOption, PortOption, WorkersOption

DataOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory to keep the embedded store in.", show_default=False)
]
NoAgentOption = Annotated[bool, typer.Option("--no-agent", help="Do not run the agent of this machine.")]


def up(
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    workers: WorkersOption = 1,
    fleet: FleetOption = "",
    no_agent: NoAgentOption = False,
    data: DataOption = None,
    tls_cert: TlsCertOption = "",
    tls_key: TlsKeyOption = "",
    tls_ca: TlsCaOption = "",
    behind_proxy: BehindProxyOption = "",
    insecure: InsecureOption = False,
) -> None:
    """Run a store, the API and the agent of this machine until Ctrl-C."""
    exposure = ExposureOptions(tls_cert, tls_key, tls_ca, behind_proxy)
    options = StackOptions(host, port, workers, not no_agent, fleet, data, insecure, exposure.environment())
    with until_ended(), LocalStack(settings_for(given=exposure.settings()), options) as everything:
        everything.start()
        with shown("starting"):
            readiness.ready(everything)
        summary.started(everything)
        while True:
            _look(everything)
            time.sleep(LOOK_EVERY_S)


def _look(everything: LocalStack) -> None:
    everything.look()
    for name, code in everything.gone_agents().items():
        print(
            f"redsched: {name} exited with code {code}; the other processes continue.\n"
            "  Its hosts are down once their leases end, and their work goes on. Start it\n"
            "  again in a shell with the line `shell` above:\n"
            f"    {everything.lines[name]}",
            file=sys.stderr,
        )
