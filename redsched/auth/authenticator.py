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
from redsched.auth.oidc.key_set import KeySet
from redsched.auth.oidc.verification import REFUSED, OidcCaller, OidcTokens, is_jwt
from redsched.auth.token_file import TokenEntry
from redsched.auth.watched_file import WatchedTokenFile
from redsched.errors import Unauthenticated
from redsched.settings import Settings

LOOK_EVERY_S = 1.0
_NO_DIGEST = bytes(32)
"""What the digests of unknown ids are compared with, so that they take the same time. No token has this digest."""

log = logs.get_logger(__name__)


class Authenticator:
    """Identifies callers by their tokens. Uses no store."""

    def __init__(self, file: WatchedTokenFile) -> None:
        self._file = file
        self._oidc: OidcTokens | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """Return the authenticator of the settings; None without authentication. Raises InvalidRequest."""
        return cls(WatchedTokenFile(Path(settings.auth))) if settings.auth else None

    async def identify(self, token: str) -> Caller:
        """Return the caller of a token. Raises Unauthenticated.

        All errors have one text, which does not tell whether an id exists. Only those about a token that is genuine say
        more: that it has expired, or that the claims of a provider's token give it no role.
        """
        if is_jwt(token) and (oidc := self._oidc_tokens()) is not None:
            return await oidc.identify(token)
        entry = self._file.contents.tokens.get(id_of(token))
        if not hmac.compare_digest(digest_of(token), entry.digest if entry else _NO_DIGEST) or entry is None:
            raise Unauthenticated(REFUSED)
        return _unexpired(entry)

    def still_valid(self, caller: Caller) -> bool:
        """Return whether a caller that was identified has neither expired nor been revoked or changed since."""
        if _has_expired(caller):
            return False
        if isinstance(caller, OidcCaller):
            return caller.config is self._file.contents.oidc
        entry = self._file.contents.tokens.get(caller.id)
        return entry is not None and entry.caller is caller

    async def watch_file(self, stop: asyncio.Event) -> None:
        """Read the file again whenever it has changed, and a provider's keys when they are old, until `stop` is set."""
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOOK_EVERY_S)
            await self._look()

    async def _look(self) -> None:
        try:
            # Off the loop: a large file takes seconds to parse, and a file system may hang.
            await asyncio.to_thread(self._file.look)
            if (oidc := self._oidc_tokens()) is not None:
                oidc.keys.refresh()
        except Exception:  # whatever it is, later changes must not go unnoticed
            log.exception("token_file_not_checked")

    def _oidc_tokens(self) -> OidcTokens | None:
        """Return the tokens of the provider that the file names now; None if it names none."""
        config, before = self._file.contents.oidc, self._oidc
        if config is None:
            self._oidc = None
        elif before is None:
            self._oidc = OidcTokens(config, KeySet(config.issuer, config.jwks_url))
        elif before.config is not config:
            self._oidc = before.following(config)
        return self._oidc


def _unexpired(entry: TokenEntry) -> Caller:
    if _has_expired(entry.caller):
        raise Unauthenticated(f"the token {entry.caller.id!r} has expired: ask an operator for another one")
    return entry.caller


def _has_expired(caller: Caller) -> bool:
    return caller.expires_at_s is not None and time.time() >= caller.expires_at_s
