"""The authenticator: finds the caller of a token, by a token file that it reads again when it changes."""

import asyncio
import contextlib
import hmac
import time
from pathlib import Path
from typing import Self

from redsched import logs
from redsched.auth.access_token import digest_of, id_of
from redsched.auth.caller import Caller
from redsched.auth.token_file import TokenEntry
from redsched.auth.watched_file import WatchedTokenFile
from redsched.errors import Unauthenticated
from redsched.settings import Settings

MAX_TOKEN_CHARACTERS = 16_384
LOOK_EVERY_S = 1.0
REFUSED = "the token is not valid: send one that has neither expired nor been revoked"
"""For each token that is wrong in any way: the text must not tell which ids exist."""

_NO_DIGEST = bytes(32)
"""What the digests of unknown ids are compared with, so that they take the same time. No token has this digest."""

log = logs.get_logger(__name__)


class Authenticator:
    """Identifies callers by their tokens. Uses no store."""

    def __init__(self, file: WatchedTokenFile) -> None:
        self._file = file

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Return the authenticator of the settings; None without authentication. Raises InvalidRequest."""
        return cls(WatchedTokenFile(Path(settings.auth))) if settings.auth else None

    async def identify(self, token: str) -> Caller:
        """Return the caller of a token. Raises Unauthenticated.

        Of tokens of the file, only one with the right secret is told that it has expired.
        """
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise Unauthenticated(REFUSED)
        entry = self._file.contents.tokens.get(id_of(token))
        if not hmac.compare_digest(digest_of(token), entry.digest if entry else _NO_DIGEST) or entry is None:
            raise Unauthenticated(REFUSED)
        return _unexpired(entry)

    def still_valid(self, caller: Caller) -> bool:
        """Return whether a caller that was identified has neither expired nor been revoked or changed since."""
        entry = self._file.contents.tokens.get(caller.id)
        return entry is not None and entry.caller is caller and not _has_expired(caller)

    async def watch_file(self, stop: asyncio.Event) -> None:
        """Read the file again whenever it has changed, until `stop` is set."""
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOOK_EVERY_S)
            await self._look()

    async def _look(self) -> None:
        try:
            # Off the loop: a large file takes seconds to parse, and a file system may hang.
            await asyncio.to_thread(self._file.look)
        except Exception:  # whatever it is, later changes must not go unnoticed
            log.exception("token_file_not_checked")


def _unexpired(entry: TokenEntry) -> Caller:
    if _has_expired(entry.caller):
        raise Unauthenticated(f"the token {entry.caller.id!r} has expired: ask an operator for another one")
    return entry.caller


def _has_expired(caller: Caller) -> bool:
    return caller.expires_at_s is not None and time.time() >= caller.expires_at_s
