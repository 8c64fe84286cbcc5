"""Token files for tests, written as an operator or `redsched token` would."""

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import yaml

from redsched.auth.access_token import digest_of
from redsched.auth.authenticator import Authenticator
from redsched.settings import Settings


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    """Replace a file at once, as editors do."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.write_text(text)
    unfinished.chmod(mode)
    unfinished.replace(path)
    return path


def entry(token: str, **fields: Any) -> dict[str, Any]:
    """Return the entry of a token; of an operator unless `fields` say otherwise."""
    token_id = token.removeprefix("rst_")[:-44]
    return {"id": token_id, "sha256": digest_of(token).hex(), "role": "operator", **fields}


def document(*entries: dict[str, Any], **sections: Any) -> str:
    """Return the text of a token file."""
    return yaml.safe_dump({"tokens": list(entries), **sections})


def authenticator(path: Path) -> Authenticator:
    """Return the authenticator of a file."""
    found = Authenticator.of(Settings(auth=os.fspath(path)))
    assert found is not None
    return found


def token(token_id: str, number: int = 1) -> str:
    """Return a token, the same each time: tests are named by it."""
    secret = hashlib.sha256(f"{token_id} {number}".encode()).digest()
    return f"rst_{token_id}_{base64.urlsafe_b64encode(secret).decode().rstrip('=')}"
