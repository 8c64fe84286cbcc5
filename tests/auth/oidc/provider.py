"""An OpenID Connect provider for tests: real keys, and a real HTTP server on this machine."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.support.waiting import patience_s

AUDIENCE = "redsched"
DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/keys"


@cache
def private_key(kind: str, name: str = "first") -> Any:
    """Return a private key, the same for the same name: making one takes time."""
    if kind == "RSA":
        return rsa.generate_private_key(65_537, 2048)
    return ed25519.Ed25519PrivateKey.generate() if kind == "OKP" else ec.generate_private_key(ec.SECP256R1())


KIND = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
_TO_JWK: dict[str, Callable[..., Any]] = {
    "RSA": RSAAlgorithm.to_jwk,
    "EC": ECAlgorithm.to_jwk,
    "OKP": OKPAlgorithm.to_jwk,
}


def public_jwk(kind: str, key_id: str, name: str = "first", **fields: Any) -> dict[str, Any]:
    """Return a public key as the provider publishes it."""
    jwk = _TO_JWK[kind](private_key(kind, name).public_key(), as_dict=True)
    return {**jwk, "kid": key_id, "use": "sig", **fields}


class Provider:
    """The provider's documents, by path, and what was asked for."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.documents: dict[str, object] = {
            DISCOVERY: {"issuer": self.issuer, "jwks_uri": self.issuer + KEYS},
            KEYS: {"keys": [public_jwk("RSA", "k1")]},
        }
        """Each is sent as JSON; bytes are sent as they are, and a status or a pair (302, URL) without a body."""
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def token(self, algorithm: str = "RS256", key_id: str | None = "k1", name: str = "first", **claims: Any) -> str:
        """Return a signed token. A claim that is None is left out."""
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": AUDIENCE, "sub": "alice", "exp": now + 600, "groups": ["ops"]}
        content = {name: value for name, value in (usual | claims).items() if value is not None}
        headers = {} if key_id is None else {"kid": key_id}
        return jwt.encode(content, private_key(KIND[algorithm], name), algorithm, headers=headers)

    def config(self, **fields: Any) -> dict[str, Any]:
        """Return the section `oidc` for this provider."""
        roles = {
            "ops": {"role": "operator"},
            "web": {"role": "tenant", "projects": ["web"], "claim_prefix": "web-"},
        }
        usual = {"issuer": self.issuer, "audience": AUDIENCE, "role_claim": "groups", "roles": roles}
        return {name: value for name, value in (usual | fields).items() if value is not None}


@contextmanager
def provider() -> Iterator[Provider]:
    """Serve a provider on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            served.may_answer.wait(patience_s(20))
            found = served.documents.get(self.path, 404)
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(found if isinstance(found, int) else found[0] if isinstance(found, tuple) else 200)
            if isinstance(found, tuple):
                self.send_header("Location", found[1])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Provider(server.server_port)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        served.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
