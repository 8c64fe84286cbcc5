"""The fault suite forks its processes: their exits are reported, and leftover ones are found."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from tests.faults.suite.processes.leftovers import left_over, marked
from tests.faults.suite.processes.nursery import MODULES, nursery
from tests.support.waiting import wait_until

LONGEST_S = 30


@pytest.fixture
def pipe() -> Iterator[tuple[int, int, int]]:
    """Return an input that stays open, so that the process runs until it is killed, and outputs that are discarded."""
    its_input, ours = os.pipe()
    output = os.open(os.devnull, os.O_WRONLY)
    yield its_input, output, output
    for one in (its_input, ours, output):
        os.close(one)


@pytest.mark.parametrize("module", MODULES)
async def test_a_killed_process_is_found_until_its_end_is_reported(module: str, pipe: tuple[int, int, int]) -> None:
    """The process leads its own POSIX session, and carries the mark of the run that started its nursery."""
    with marked() as mark:
        async with nursery() as forking:
            stays = await forking.fork(module, pipe)
            assert stays.runs
            assert stays.pid in left_over(mark)
            await wait_until(lambda: os.getsid(stays.pid) == stays.pid)
            stays.kill()
            assert await asyncio.wait_for(stays.ended(), LONGEST_S) == -signal.SIGKILL
            assert not stays.runs
        assert left_over(mark) == {}


async def test_a_process_ends_with_its_input(pipe: tuple[int, int, int]) -> None:
    its_input, ours = os.pipe()
    os.close(ours)
    async with nursery() as forking:
        ends = await forking.fork(MODULES[0], (its_input, *pipe[1:]))
        os.close(its_input)
        assert await asyncio.wait_for(ends.ended(), LONGEST_S) == 0


async def test_nobody_waits_for_a_nursery_that_is_gone(pipe: tuple[int, int, int]) -> None:
    with marked() as mark:
        async with nursery() as forking:
            stays = await forking.fork(MODULES[0], pipe)
            [pid] = left_over(mark).keys() - {stays.pid}
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(OSError, match="the nursery has ended by itself"):
                await asyncio.wait_for(stays.ended(), LONGEST_S)
            stays.kill()
