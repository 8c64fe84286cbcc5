"""`redsched api`: the API alone, for deployments with a machine for each component."""

import time
from typing import Annotated

import typer

from redsched.auth.authenticator import Authenticator
from redsched.cli.exposure import (
    BehindProxyOption,
    ExposureOptions,
    InsecureOption,
    TlsCaOption,
    TlsCertOption,
    TlsKeyOption,
)
from redsched.cli.fleet import settings_for, store_url
from redsched.cli.options import Url
from redsched.cli.running import until_ended
from redsched.serve.supervisor import Workers

LOOK_EVERY_S = 0.2

HostOption = Annotated[str, typer.Option("--host", help="Address to listen on.")]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port to listen on; 0: any free port.")]
WorkersOption = Annotated[
    int, typer.Option("--workers", min=1, max=256, help="Number of API processes, which share the port.")
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
    store = store_url(settings)
    Authenticator.of(settings)  # only to check the token file
    with until_ended(), Workers(host, port, workers, settings=settings, insecure=insecure) as serving:
        serving.start({"REDSCHED_REDIS_URL": store, **exposure.environment()})
        print(f"the API listens on {serving.url}, its documentation is at {serving.url}/docs", flush=True)
        while True:
            serving.revive()
            time.sleep(LOOK_EVERY_S)
