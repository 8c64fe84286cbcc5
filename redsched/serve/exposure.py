"""The bind guard: who may reach an API depends on the address that it listens on, and on what protects it there.

A loopback address needs no protection. Any other needs authentication and TLS, or a proxy in front that has the TLS.
"""

import ipaddress
import socket
from dataclasses import dataclass

from redsched.errors import InvalidRequest
from redsched.settings import Settings

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOOPBACK: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class Peers:
    """The networks from which connections are accepted: those of a proxy, and this machine."""

    networks: tuple[Network, ...]

    def accept(self, text: str) -> bool:
        """Return whether the peer at an address may connect."""
        address = parse_address(text)
        return address is not None and any(address in one for one in (*self.networks, *LOOPBACK))


def peers(settings: Settings) -> Peers | None:
    """Return the peers that may connect; None if all may."""
    if not settings.behind_proxy:
        return None
    return Peers(tuple(ipaddress.ip_network(one, strict=False) for one in settings.behind_proxy))


def check_exposure(host: str, settings: Settings, insecure: bool = False) -> None:
    """Raise InvalidRequest if the API must not listen on `host` as `settings` protect it.

    `insecure`: the caller accepts that anybody who reaches the address may do everything.
    """
    if insecure or is_loopback(host):
        return
    missing = []
    if not settings.auth:
        missing.append("authentication (REDSCHED_AUTH)")
    if not settings.tls_cert and not settings.behind_proxy:
        missing.append("TLS (--tls-cert and --tls-key; or --behind-proxy with the addresses of a proxy that has it)")
    if missing:
        raise InvalidRequest(
            f"{host or 'every address'!r} is not a loopback address, and the API there would be without "
            f"{' and '.join(missing)}: set {'it' if len(missing) == 1 else 'them'}, or pass --insecure if everybody "
            "who reaches this address may do everything"
        )


def is_loopback(host: str) -> bool:
    """Return whether a name or address stands for loopback addresses only. One that is not known does not."""
    try:
        found = socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return False
    addresses = [parse_address(str(one[4][0])) for one in found]
    return bool(addresses) and all(one is not None and one.is_loopback for one in addresses)


def parse_address(text: str) -> Address | None:
    """Return an IP address, that of IPv4 for one that IPv6 maps; None for another text."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
