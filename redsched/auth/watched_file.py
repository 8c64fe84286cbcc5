"""A token file that is read again when it has changed; what cannot be used changes nothing."""

from pathlib import Path

from redsched import logs
from redsched.auth.private_file import version_of
from redsched.auth.token_file import read_token_file
from redsched.errors import InvalidRequest

log = logs.get_logger(__name__)


class WatchedTokenFile:
    """The contents of a token file in its last usable version."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises InvalidRequest."""
        self._path = path
        self._version = version_of(path)
        """The version that was read last, usable or not."""
        self._is_settled = False
        """Whether it was read twice: a second write within a tick of the file system's clock leaves no trace."""
        self._refused: object = None
        """The version and the reason that were logged last."""
        self.contents = read_token_file(path)

    def look(self) -> None:
        """Read the file again if it has changed. One that cannot be used is logged once, and changes nothing."""
        version = version_of(self._path)
        is_same = version == self._version
        if is_same and self._is_settled:
            return
        self._version, self._is_settled = version, is_same
        try:
            contents = read_token_file(self._path)
        except InvalidRequest as error:
            self._log_once(error)
            return
        self._refused = None
        if contents != self.contents:
            self.contents = contents.keeping(self.contents)
            log.info("token_file_read", path=str(self._path), tokens=len(contents.tokens))

    def _log_once(self, error: InvalidRequest) -> None:
        refused = (self._version, error.detail)
        if refused != self._refused:
            self._refused = refused
            log.warning("token_file_refused", reason=error.detail, consequence="the previous version stays in force")
