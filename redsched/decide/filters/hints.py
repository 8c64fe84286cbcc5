"""The filter of the network hint: hosts near an address, by their label `ip`. Other hints do not depend on columns."""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address, ip_network

from redsched.cache.columns import Columns
from redsched.decide.rules import Rule
from redsched.decide.text_match import matching
from redsched.model import Request

ADDRESS = "ip"
"""The label with a host's address."""
NEAR_HOST_IP = "build_near_host_ip"


def network(request: Request) -> Iterator[Rule]:
    """Accept hosts whose label `ip` is an address in the requested network. A host without the label fails."""
    if not request.hints.build_near_host_ip:
        return
    wanted = ip_network(request.hints.network(), strict=False)
    within = range(int(wanted.network_address), int(wanted.broadcast_address) + 1)

    def matches(text: str) -> bool:
        version, number = _address(text)
        return version == wanted.version and number in within

    yield Rule(
        NEAR_HOST_IP,
        lambda columns, rows: matching(columns, columns.labels.get(ADDRESS), rows, matches),
        lambda columns, row: f"needs an address in {wanted}, {_detail_of(columns, row)}",
    )


# A fleet has as many addresses as hosts, and parsing them each time would cost more than the rest of the filter.
@lru_cache(maxsize=65_536)
def _address(text: str) -> tuple[int, int]:
    """Return the IP version and the address as a number; (0, 0) if it is not an address."""
    try:
        found = ip_address(text)
    except ValueError:
        return 0, 0
    return found.version, int(found)


def _detail_of(columns: Columns, row: int) -> str:
    texts = columns.labels.get(ADDRESS)
    text = texts.text(row) if texts else ""
    if not text:
        return f"has no label {ADDRESS}"
    return f"has {text}" + (", which is not an address" if _address(text) == (0, 0) else "")
