"""Verification of a provider's bearer tokens (JSON Web Tokens), and the callers that their claims describe."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from redsched import logs
from redsched.auth.access_token import PREFIX, digest_of
from redsched.auth.caller import Caller
from redsched.auth.oidc.config import OidcConfig
from redsched.auth.oidc.key_set import KeySet
from redsched.auth.role_fields import project_name
from redsched.errors import InvalidRequest, Unauthenticated
from redsched.model.role import Role

if TYPE_CHECKING:
    from jwt import PyJWK

LEEWAY_S = 30.0
"""How far the clocks of the provider and of this machine may differ."""
MAX_KNOWN = 1024
MAX_SUBJECT = 250
ID_PREFIX = "oidc:"
"""Begins the ids of callers: the ids of tokens in the token file have no colon."""
REQUIRED = ["exp", "iss", "aud", "sub"]
OPTIONS = {"require": REQUIRED, "enforce_minimum_key_length": True}
REFUSED = "the token is not valid: send one that has neither expired nor been revoked"
"""For each token that is wrong in any way."""

log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OidcCaller(Caller):
    """A caller with a token of a provider."""

    config: OidcConfig | None = field(default=None, compare=False, repr=False)
    """By which its role was found; it is not valid any more under another one."""


class OidcTokens:
    """The tokens of one provider. The callers of verified ones are cached: a signature takes 0.1 ms."""

    def __init__(self, config: OidcConfig, keys: KeySet) -> None:
        self.config, self.keys = config, keys
        self._known: OrderedDict[bytes, OidcCaller] = OrderedDict()
        self._known_version = keys.version

    def following(self, config: OidcConfig) -> "OidcTokens":
        """Return these tokens under another configuration. The keys stay if they are of the same provider."""
        source = (config.issuer, config.jwks_url)
        return OidcTokens(config, self.keys if self.keys.source == source else KeySet(*source))

    async def identify(self, token: str) -> Caller:
        """Return the caller of a token. Raises Unauthenticated."""
        digest = digest_of(token)
        caller = self._cached().get(digest)
        if caller is None:
            caller = self._caller(await self._claims(token))
            self._cached()[digest] = caller
            while len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        if caller.expires_at_s is not None and time.time() >= caller.expires_at_s:
            raise _expired()
        return caller

    def _cached(self) -> OrderedDict[bytes, OidcCaller]:
        """Return the cache, emptied if the keys have changed: that of any token may have been withdrawn."""
        if self._known_version != self.keys.version:
            self._known.clear()
            self._known_version = self.keys.version
        return self._known

    async def _claims(self, token: str) -> Mapping[str, Any]:
        import jwt  # an extra, and slow to import

        try:
            header = jwt.get_unverified_header(token)
            algorithm, key_id = header.get("alg"), header.get("kid")
            if algorithm not in self.config.algorithms or "crit" in header or not isinstance(key_id, str | None):
                raise jwt.InvalidAlgorithmError("the header is not accepted")
            if keys := await self.keys.find(key_id, algorithm):
                return self._decoded(token, keys[0])  # key ids are unique
        except jwt.ExpiredSignatureError:  # the signature was right
            raise _expired() from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            log.debug("oidc_token_refused", reason=f"{type(error).__name__}: {error}")
            raise Unauthenticated(REFUSED) from None
        if not self.keys.has_keys:
            raise Unauthenticated("the keys of the OpenID Connect provider cannot be fetched: try again in a minute")
        raise Unauthenticated(REFUSED)

    def _decoded(self, token: str, key: "PyJWK") -> Mapping[str, Any]:
        import jwt

        return jwt.decode(
            token,
            key,
            algorithms=list(self.config.algorithms),
            audience=self.config.audience,
            issuer=self.config.issuer,
            leeway=LEEWAY_S,
            options=OPTIONS,  # type: ignore[arg-type]  # a TypedDict
        )

    def _caller(self, claims: Mapping[str, Any]) -> OidcCaller:
        """Return the caller that verified claims describe. Raises Unauthenticated."""
        given = set(_texts(_claim(claims, self.config.role_claim)))
        template = next((fields for name, fields in self.config.roles.items() if name in given), None)
        if template is None:
            raise Unauthenticated(f"the token has no role: its claim {self.config.role_claim!r} names none known here")
        projects = template.get("projects", frozenset()) | self._projects(template, claims)
        if template["role"] is Role.TENANT and not projects:
            raise Unauthenticated(f"the token has no project in its claim {self.config.projects_claim!r}")
        expires_at_s = float(claims["exp"]) + LEEWAY_S
        known = {**template, "projects": projects, "expires_at_s": expires_at_s, "config": self.config}
        return OidcCaller(id=f"{ID_PREFIX}{_subject(claims['sub'])}", **known)

    def _projects(self, template: Mapping[str, Any], claims: Mapping[str, Any]) -> frozenset[str]:
        if not self.config.projects_claim or template["role"] is not Role.TENANT:
            return frozenset()
        try:
            return frozenset(project_name(one) for one in _texts(_claim(claims, self.config.projects_claim)))
        except InvalidRequest as error:
            raise Unauthenticated(f"the token's claim {self.config.projects_claim!r}: {error}") from None


def is_jwt(token: str) -> bool:
    """Return whether a text may be a JSON Web Token."""
    return token.count(".") == 2 and not token.startswith(PREFIX)


def _claim(claims: Mapping[str, Any], name: str) -> object:
    """Return a claim by its name, or by a path such as `realm_access.roles`; None if there is none."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _texts(value: object) -> Iterable[str]:
    """Return a claim's texts: of a list, or of one text. Others are no values of a role or project."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str)]


def _subject(value: object) -> str:
    # It is written into logs, events and claims.
    text = str(value)
    if not text or len(text) > MAX_SUBJECT or not (text.isascii() and text.isprintable()):
        raise Unauthenticated(f"the token's subject is not a text of 1 to {MAX_SUBJECT} printable ASCII characters")
    return text


def _expired() -> Unauthenticated:
    return Unauthenticated("the token has expired: get another one from the OpenID Connect provider")
