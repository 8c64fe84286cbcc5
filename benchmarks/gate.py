"""What authentication adds to a request: the time of the gate alone, with and without a token file.

    python -m benchmarks.gate [--calls 20000]

Calls the gate with the scope of a selection, as the server makes it, around an app that does nothing. The share is that
of a selection over REST, which benchmarks.rest measures.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
import yaml
from starlette.types import Message, Receive, Scope, Send

from redsched.api.access.gate import Gate
from redsched.api.app import create_app
from redsched.auth.access_token import digest_of, new_token
from redsched.auth.authenticator import Authenticator
from redsched.settings import Settings

SELECTION_US = 430.0
"""A selection over REST on one core, by benchmarks.rest (docs/benchmarks.md)."""
ROUNDS = 5
ROLES: dict[str, dict[str, Any]] = {
    "operator": {"role": "operator"},
    "tenant": {"role": "tenant", "projects": ["web"]},
}


async def nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Do nothing."""


async def receive() -> Message:
    """Return an empty body."""
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(_message: Message) -> None:
    """Drop a message."""


def scope_of(token: str) -> Scope:
    """Return the scope of a selection."""
    headers = [(b"host", b"localhost:8080"), (b"accept", b"*/*"), (b"user-agent", b"python-httpx/0.28.1")]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"120")]
    headers += [(b"authorization", b"Bearer " + token.encode())]
    return {"type": "http", "method": "POST", "path": "/v1/selections", "headers": headers}


async def microseconds(gate: Gate, scope: Scope, calls: int) -> float:
    """Return the least processor time of a call over several rounds."""
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(calls):
            await gate(scope, receive, send)
        times.append((time.process_time() - started) / calls * 1e6)
    return min(times)


async def measure(calls: int) -> None:
    """Print the time without authentication, and with a token of each role."""
    tokens = {role: new_token(role) for role in ROLES}
    entries = [{"id": role, "sha256": digest_of(tokens[role]).hex(), **fields} for role, fields in ROLES.items()]
    routes = create_app(Settings()).state.routes
    with tempfile.TemporaryDirectory(prefix="redsched-benchmark-") as folder:
        file = Path(folder) / "tokens.yaml"
        file.write_text(yaml.safe_dump({"tokens": entries}))
        file.chmod(0o600)
        known = Authenticator.of(Settings(auth=os.fspath(file)))
        without = await microseconds(Gate(nothing, routes, None), scope_of(""), calls)
        print(f"without authentication  {without:5.2f} us")
        for role, token in tokens.items():
            added = await microseconds(Gate(nothing, routes, known), scope_of(token), calls) - without
            print(f"{role:<22}  {added:5.2f} us more, {added / SELECTION_US:.1%} of {SELECTION_US:g} us")


def main() -> None:
    """Parse the arguments and measure."""
    parser = argparse.ArgumentParser(description="What authentication adds to a request.")
    parser.add_argument("--calls", type=int, default=20_000)
    uvloop.run(measure(parser.parse_args().calls))


if __name__ == "__main__":
    main()
