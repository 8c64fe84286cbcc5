"""The files of a store URL's TLS options, checked before anything connects.

redis-py reads them at each connect, and reports one that it cannot read as a server that does not respond.
"""

import ssl
from pathlib import Path

from redsched.auth.certificates import load_authorities, load_pair
from redsched.errors import InvalidRequest
from redsched.store.topology.url import StoreUrl


def check_tls_files(url: StoreUrl) -> None:
    """Raise InvalidRequest if a file cannot be used, or if others than its owner may access a key."""
    ca, cert, key = (_path(url, name) for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"))
    if not (ca or cert or key):
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is not None:
        load_authorities(context, ca)
    if cert is not None:
        load_pair(context, cert, key or cert)
    elif key is not None:
        raise InvalidRequest(f"the store's URL has ssl_keyfile={key} without a certificate: add ssl_certfile=FILE")


def _path(url: StoreUrl, name: str) -> Path | None:
    value = url.options.get(name)
    return Path(str(value)) if value else None
