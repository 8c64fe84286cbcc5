"""Certificates for tests: an authority, and what it signs, as files with the modes that servers require."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key."""

    cert: Path
    key: Path


class Authority:
    """A new authority, whose certificate is in `ca`."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._ca, self._folder = trustme.CA(organization_name=name), folder
        self.ca = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(str(self.ca))

    def sign(self, name: str, *names: str, until: datetime | None = None) -> Pair:
        """Write a certificate for `names`, by default for this machine, to files that begin with `name`."""
        made = self._ca.issue_cert(*(names or ("localhost", "127.0.0.1", "::1")), not_after=until)
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        pair.cert.write_bytes(b"".join(one.bytes() for one in made.cert_chain_pems))
        pair.key.touch(mode=0o600)
        pair.key.write_bytes(made.private_key_pem.bytes())
        return pair
