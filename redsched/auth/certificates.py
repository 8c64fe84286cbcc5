"""Loading of certificates, keys and authorities from files (PEM), with errors that name the file."""

import ssl
from pathlib import Path
from typing import NoReturn

from redsched.auth.private_file import check_private
from redsched.errors import InvalidRequest


def load_pair(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    """Load a certificate with its chain, and its key; both may be in one file.

    Raises InvalidRequest if they cannot be used, or if others than the key's owner may access the key.
    """
    try:
        check_private(f"the key {key}", key.stat())
        context.load_cert_chain(cert, key, _refuse_password)
    except OSError as error:  # one of OpenSSL is an OSError too
        raise InvalidRequest(
            f"certificate {cert} and key {key} cannot be used: {_reason(error)}: check both files"
        ) from error


def load_authorities(context: ssl.SSLContext, ca: Path) -> None:
    """Load the authorities that may have signed the other side's certificate. Raises InvalidRequest."""
    try:
        context.load_verify_locations(ca)
    except OSError as error:
        raise InvalidRequest(f"authorities {ca} cannot be used: {_reason(error)}: check the file") from error


def _reason(error: OSError) -> str:
    # The text of an error of OpenSSL has its place in the source.
    return str(getattr(error, "reason", None) or error.strerror or error)


def _refuse_password() -> NoReturn:
    raise InvalidRequest("the key has a passphrase, and nobody is there to type it: write it without one")
