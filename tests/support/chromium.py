"""Whether Chromium is here to open pages.

Tests that need it are skipped without it, unless REDSCHED_TEST_BROWSER is set (`scripts/test --browser`).
"""

import os
import shutil

import pytest

REQUIRED = "REDSCHED_TEST_BROWSER"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def need_browser() -> tuple[str, str]:
    """Return the paths of Chromium and chromedriver; skip the test without them, or fail if they are required."""
    if why := missing_browser():
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(why)
    return _installed(*CHROMIUM), _installed("chromedriver")


def missing_browser() -> str:
    """Return what is missing to open pages, and how to get it; empty if nothing is."""
    missing = [names[0] for names in (CHROMIUM, ("chromedriver",)) if not _installed(*names)]
    if not missing:
        return ""
    return f"{' and '.join(missing)} not on PATH: the dashboard was not opened; apt install chromium chromium-driver"


def _installed(*names: str) -> str:
    """Return the path of the first of these programs that is installed; empty if none is."""
    return next(filter(None, map(shutil.which, names)), "")
