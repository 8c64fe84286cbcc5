"""The models of the protocol hold, and fail as soon as a rule is removed (docs/model/README.md)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.profiles import is_long

CHECK = Path(__file__).parents[2] / "scripts" / "check-model"
LONGEST_S = 3600 if is_long() else 900
"""For a run that hangs: how long SPIN and the compiler take depends on the machine."""

pytestmark = [
    pytest.mark.skipif(
        shutil.which("spin") is None or shutil.which("cc") is None,
        reason="spin or cc is not installed, the models of the protocol were not checked: apt install spin gcc",
    ),
    pytest.mark.timeout(LONGEST_S),
]


def test_models_hold_and_break_without_their_rules() -> None:
    """SPIN finds no error in the intended protocol, and one where a rule is removed."""
    words = [] if is_long() else ["--short"]
    done = subprocess.run(
        [sys.executable, str(CHECK), *words],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "holds" in done.stdout
    assert "breaks" in done.stdout
