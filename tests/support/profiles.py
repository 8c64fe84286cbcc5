"""The sizes of the property and fault suites: short by default, long by REDSCHED_TEST_PROFILE=long.

The short run is the same every time, so its failures are reproducible; the long run searches for new failures.
"""

import os

from hypothesis import Phase, settings

SHORT, LONG = "ci", "long"
SHORT_EXAMPLES, SHORT_STEPS = 30, 20
LONG_EXAMPLES, LONG_STEPS = 150, 40


def load_profile() -> str:
    """Register both profiles, load the selected one, and return its name."""
    settings.register_profile(
        SHORT, max_examples=SHORT_EXAMPLES, stateful_step_count=SHORT_STEPS, derandomize=True, deadline=None
    )
    settings.register_profile(
        LONG, max_examples=LONG_EXAMPLES, stateful_step_count=LONG_STEPS, deadline=None, print_blob=True
    )
    settings.load_profile(profile_name())
    return profile_name()


def profile_name() -> str:
    """Return the selected profile. Raises ValueError for an unknown one."""
    name = os.environ.get("REDSCHED_TEST_PROFILE", SHORT)
    if name not in {SHORT, LONG}:
        raise ValueError(f"REDSCHED_TEST_PROFILE is {name!r}: use {SHORT!r} or {LONG!r}")
    return name


def is_long() -> bool:
    """Return whether this is the long run: fault suites use it to choose their number of rounds."""
    return profile_name() == LONG


# Explaining traces every line, and shrinking plays hundreds of runs: against a server the short run would end in a
# timeout instead of the steps that failed.
PHASES = set(Phase) - {Phase.explain} if is_long() else {Phase.generate}
