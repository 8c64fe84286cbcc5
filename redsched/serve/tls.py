"""TLS of the API: its files, and the context made of them, which is replaced when a file changes."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from redsched import logs
from redsched.auth.certificates import load_authorities, load_pair
from redsched.auth.private_file import FileVersion, version_of
from redsched.errors import InvalidRequest
from redsched.settings import Settings

log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of a TLS server (PEM). With `ca`, clients need a certificate that one of its authorities signed."""

    cert: Path
    key: Path
    ca: Path | None

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Return the files that the settings name; None if they name none. Raises InvalidRequest if one is missing."""
        if not (settings.tls_cert or settings.tls_key or settings.tls_ca):
            return None
        if not (settings.tls_cert and settings.tls_key):
            raise InvalidRequest("TLS needs a certificate and its key: set both --tls-cert and --tls-key")
        return cls(Path(settings.tls_cert), Path(settings.tls_key), Path(settings.tls_ca) if settings.tls_ca else None)

    def context(self) -> ssl.SSLContext:
        """Return a new context for a server. Raises InvalidRequest for a file that cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])
        load_pair(context, self.cert, self.key)
        if self.ca is not None:
            load_authorities(context, self.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def versions(self) -> list[FileVersion | None]:
        """Return the present version of each file."""
        return [version_of(one) for one in (self.cert, self.key, self.ca) if one is not None]


class TlsContexts:
    """The context for new connections. `renew` replaces it when a file has changed, unless the new one is unusable."""

    def __init__(self, files: TlsFiles) -> None:
        """Load the files. Raises InvalidRequest."""
        self._files = files
        self._versions = files.versions()
        self.current = files.context()

    def renew(self) -> None:
        """Load the files again if one has changed. With unusable ones, the present context stays. Call it each second.

        Certificate and key are two files: between the two writes they do not match, and the second ends that.
        """
        versions = self._files.versions()
        if versions == self._versions:
            return
        self._versions = versions
        try:
            self.current = self._files.context()
        except InvalidRequest as error:
            log.warning("tls_files_refused", reason=error.detail, used="the former certificate")
        else:
            log.info("tls_files_loaded", cert=str(self._files.cert))
