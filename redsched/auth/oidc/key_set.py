"""The public keys of a provider: fetched off the loop, cached, and fetched again for an unknown key, but not often.

Whoever sends tokens with invented key ids causes one fetch in MIN_PAUSE_S, whatever their number. Keys are kept when a
fetch fails.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from redsched import aio, logs
from redsched.auth.oidc.fetch import FetchFailed, fetch_json

if TYPE_CHECKING:
    from jwt import PyJWK

MIN_PAUSE_S = 30.0
"""Between two fetches while there are keys."""
RETRY_PAUSE_S = 5.0
"""Between two fetches while there are none."""
MAX_AGE_S = 900.0
"""After this time keys are fetched again, so that one that the provider has withdrawn is not accepted for long."""
WAIT_S = 10.0
"""How long a token waits for a fetch."""
MAX_KEYS = 100
MAX_NUMBER = 1400
"""Characters of an RSA modulus of 8,192 bits: verifying with larger ones takes long."""

KEY_TYPES = {"RS": ("RSA", ""), "PS": ("RSA", ""), "Ed": ("OKP", "Ed25519")}
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_PUBLIC = ("kty", "kid", "alg", "use", "key_ops", "crv", "n", "e", "x", "y")

log = logs.get_logger(__name__)


class KeySet:
    """The keys of one provider."""

    def __init__(self, issuer: str, jwks_url: str) -> None:
        self.source = (issuer, jwks_url)
        """Whose keys these are."""
        self.version = 0
        """Counts changes of the keys."""
        self._keys: list[dict[str, Any]] = []
        self._parsed: dict[tuple[int, str], PyJWK] = {}
        self._fetched_at_s = self._tried_at_s = float("-inf")
        self._fetching: asyncio.Future[None] | None = None

    @property
    def has_keys(self) -> bool:
        """Whether any keys were fetched."""
        return bool(self._keys)

    async def find(self, key_id: str | None, algorithm: str) -> Sequence["PyJWK"]:
        """Return the keys that may have signed a token; without a key id only if there is one for the algorithm."""
        found = self._matching(key_id, algorithm)
        if not found:
            await self._fetch_if_due(RETRY_PAUSE_S if not self._keys else MIN_PAUSE_S)
            found = self._matching(key_id, algorithm)
        return [self._parse(number, algorithm) for number in found if key_id is not None or len(found) == 1]

    def refresh(self) -> None:
        """Begin to fetch keys that are old, or missing. Call it periodically."""
        now_s = time.monotonic()
        pause_s = MIN_PAUSE_S if self._keys else RETRY_PAUSE_S
        if now_s - self._fetched_at_s >= MAX_AGE_S and now_s - self._tried_at_s >= pause_s:
            self._begin()

    async def _fetch_if_due(self, pause_s: float) -> None:
        is_running = self._fetching is not None and not self._fetching.done()
        if not is_running and time.monotonic() - self._tried_at_s < pause_s:
            return
        fetching = self._begin()
        await asyncio.wait([fetching], timeout=WAIT_S)

    def _begin(self) -> "asyncio.Future[None]":
        """Return the fetch that runs, or that begins now: never more than one thread waits for the provider."""
        if self._fetching is None or self._fetching.done():
            self._tried_at_s = time.monotonic()
            self._fetching = aio.detached(self._fetch(), name="redsched-oidc-keys")
        return self._fetching

    async def _fetch(self) -> None:
        try:
            keys = await asyncio.to_thread(fetch_keys, *self.source)
        except FetchFailed as error:
            log.warning("oidc_keys_not_fetched", reason=str(error), kept=len(self._keys))
            return
        self._fetched_at_s = time.monotonic()
        if keys != self._keys:
            self._keys, self._parsed = keys, {}
            self.version += 1
            log.info("oidc_keys_fetched", issuer=self.source[0], keys=len(keys))

    def _matching(self, key_id: str | None, algorithm: str) -> list[int]:
        kind, curve = KEY_TYPES.get(algorithm[:2], ("EC", CURVES.get(algorithm, "")))
        return [
            number
            for number, key in enumerate(self._keys)
            if key["kty"] == kind
            and key.get("crv", "") == curve
            and key.get("alg", algorithm) == algorithm
            and (key_id is None or key.get("kid") == key_id)
        ]

    def _parse(self, number: int, algorithm: str) -> "PyJWK":
        from jwt import PyJWK  # an extra

        found = self._parsed.get((number, algorithm))
        if found is None:
            found = self._parsed[number, algorithm] = PyJWK(self._keys[number], algorithm)
        return found


def fetch_keys(issuer: str, jwks_url: str) -> list[dict[str, Any]]:
    """Return the public keys for signatures that a provider publishes. Blocks. Raises FetchFailed."""
    url = jwks_url or _discovered(issuer)
    keys = fetch_json(url).get("keys")
    if not isinstance(keys, list) or len(keys) > MAX_KEYS:
        raise FetchFailed(f"{url} has no list `keys` of at most {MAX_KEYS}")
    found = [{name: key[name] for name in _PUBLIC if name in key} for key in keys if _is_for_signatures(key)]
    if not found:
        raise FetchFailed(f"{url} has no key for signatures")
    return found


def _discovered(issuer: str) -> str:
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = fetch_json(url)
    if document.get("issuer") != issuer:
        raise FetchFailed(f"{url} is of another issuer")
    if not isinstance(found := document.get("jwks_uri"), str):
        raise FetchFailed(f"{url} has no jwks_uri")
    return found


def _is_for_signatures(key: object) -> bool:
    if not isinstance(key, Mapping) or key.get("kty") not in ("RSA", "EC", "OKP"):
        return False
    operations = key.get("key_ops", ["verify"])
    texts = all(isinstance(key.get(name, ""), str) for name in _PUBLIC if name != "key_ops")
    is_small = texts and len(key.get("n", "")) <= MAX_NUMBER
    return is_small and key.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
