"""Addresses of this machine, to which secrets may be sent without TLS."""

import ipaddress


def is_this_machine(host: str) -> bool:
    """Return whether a host is `localhost` or a loopback address. Other names are not resolved."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
