"""The environment of hooks: an allow-list, because that of the agent may hold the store's password and tokens."""

import os
from collections.abc import Collection, Mapping

PASSED = frozenset(
    {"PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR", "REDSCHED_JOB_FOLDER"}
)
PASSED_PREFIXES = ("LC_", "SSL_CERT_")


def hook_environment(also: Collection[str], own: Mapping[str, str]) -> dict[str, str]:
    """Return what a hook gets: the allowed variables of this process, those named in `also`, and `own`."""
    passed = {name: value for name, value in os.environ.items() if _is_passed(name) or name in also}
    return {**passed, **own}


def _is_passed(name: str) -> bool:
    return name in PASSED or name.startswith(PASSED_PREFIXES)
