"""The options of `up` and `api` that decide who may reach the API, and how workers get them."""

from dataclasses import dataclass
from typing import Annotated

import typer

TlsCertOption = Annotated[
    str,
    typer.Option("--tls-cert", metavar="FILE", help="Certificate and its chain (PEM): HTTPS.", show_default=False),
]
TlsKeyOption = Annotated[
    str, typer.Option("--tls-key", metavar="FILE", help="Key of the certificate (PEM).", show_default=False)
]
TlsCaOption = Annotated[
    str,
    typer.Option(
        "--tls-ca",
        metavar="FILE",
        help="Authorities of clients' certificates (PEM): clients need one.",
        show_default=False,
    ),
]
BehindProxyOption = Annotated[
    str,
    typer.Option(
        "--behind-proxy",
        metavar="ADDRESSES",
        help="Accept connections only from these addresses and networks, comma-separated; TLS is the proxy's.",
        show_default=False,
    ),
]
InsecureOption = Annotated[
    bool, typer.Option("--insecure", help="Listen on any address, even without authentication or TLS.")
]


@dataclass(frozen=True, slots=True)
class ExposureOptions:
    """The options as they were given; empty ones are left to the environment."""

    tls_cert: str
    tls_key: str
    tls_ca: str
    behind_proxy: str

    def settings(self) -> dict[str, str]:
        """Return the settings that the options give, by name."""
        given = {name: getattr(self, name) for name in self.__slots__}
        return {name: text for name, text in given.items() if text}

    def environment(self) -> dict[str, str]:
        """Return the same for the environment of the workers."""
        return {f"REDSCHED_{name.upper()}": text for name, text in self.settings().items()}
