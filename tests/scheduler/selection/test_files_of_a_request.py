"""An ordinary request passes at most four files of the package before its claim call, and so is read in these."""

import sys
from pathlib import Path
from types import FrameType

from redsched.model import Request
from redsched.scheduler import Scheduler, selection
from redsched.store.commands.claims import ClaimCommands

FOLDER = Path(selection.__file__).parent


async def test_a_request_passes_four_files_before_its_claim_call(scheduler: Scheduler) -> None:
    passed: set[str] = set()
    has_claimed = False

    def note(frame: FrameType, _event: str, _arg: object) -> None:
        nonlocal has_claimed
        path = Path(frame.f_code.co_filename)
        has_claimed = has_claimed or frame.f_code is ClaimCommands.place.__code__
        if path.parent == FOLDER and not has_claimed:
            passed.add(path.name)

    sys.setprofile(note)
    try:
        await scheduler.select(Request({"VCPU": 1}))
    finally:
        sys.setprofile(None)
    assert has_claimed
    assert passed == {"selector.py", "attempt.py", "pipeline.py", "claim_call.py"}
