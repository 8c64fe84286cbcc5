"""Whether pip reaches a package index."""

import subprocess
import sys
from functools import cache
from tempfile import TemporaryDirectory

SMALL = "sniffio"
"""A small package that redsched depends on."""


@cache
def index_is_reachable() -> bool:
    """Return whether pip can download a package."""
    with TemporaryDirectory() as folder:
        ran = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, SMALL],
            capture_output=True,
            check=False,
            timeout=120,
        )
    return ran.returncode == 0
