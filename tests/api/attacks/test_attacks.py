"""Each attack of benchmarks/attack_plays.py against a worker, smaller: it lives, and answers others meanwhile.

No figure is compared tightly: the machine may be busy. So the longest time that others wait is compared with that
before and after the attack. `python -m benchmarks.attacks` measures.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest

from benchmarks.attack_plays import PLAYS
from benchmarks.attacks import Healthz, fleet_file, percentile, play
from benchmarks.running import Up
from tests.support.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(300)

SCALE = 20
SECONDS = 0.5
BOUND_MS = 3000.0
"""Ten times the aim, as others use the machine. Before there were limits, the first attack held a worker for 44 s."""
WORSE = 30
"""How much longer than undisturbed a response may take, where that is more: on a machine that is slow or busy."""
REFUSED = {413, 422, 431, 503}
ALLOWED = {
    "200 places of 17 GPU shares": {200, 409, *REFUSED},
    "labels of 243 KB": {409, *REFUSED},
    "aggregate_metadata of 243 KB": {409, *REFUSED},
    "gang of 200 with host queries": {200, 409, *REFUSED},
    "headers, URL, trailers of 100 MB": {0, *REFUSED},
    "1,000 idle and slow connections": {0, 1, 408, 503},
    "300 subscribers of changes": {201},
    "1 MB of properties": {200, 201, 409, *REFUSED},
    "report of 256 pools x 64 classes": {200, 201, *REFUSED},
    "report with 9,000 claims": {200, 201, *REFUSED},
    "claim_ids of 1 MB, large any_of": {200, 409, *REFUSED},
    "1,000 requests that wait": {201},
    "10 hard requests that wait": {201, 409, *REFUSED},
    "1,000 aborted bodies": {1},
}
"""The statuses that may come back; 0: the connection was ended, 1: it was left to the client."""


@dataclass(frozen=True)
class Api:
    """An API with one worker, over twenty hosts of eight GPUs."""

    url: str
    worker: int


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with fleet_file(20) as file, Up(["--workers", "1", "--fleet", file]) as up:
        yield Api(up.url, up.workers[0])
        assert up.end() == []


def undisturbed_ms(url: str, share: float) -> float:
    """Return the response time that this share of some requests does not exceed while nobody attacks."""
    with Healthz(url) as healthz:
        wait_until_sync(lambda: len(healthz.times_s) >= 15)
    return percentile(healthz.times_s, share)


@pytest.mark.parametrize("name", PLAYS)
def test_others_are_answered_meanwhile(api: Api, name: str) -> None:
    before_ms = undisturbed_ms(api.url, 1.0)
    row = play(name, api.url, api.worker, SECONDS, SCALE)
    usual_ms = max(before_ms, undisturbed_ms(api.url, 0.5))  # the longest could still be of what the attack left
    assert psutil.pid_exists(api.worker)
    assert set(row.statuses) <= ALLOWED[name], row
    assert row.failures == 0, row
    assert row.max_ms < max(BOUND_MS, WORSE * usual_ms), (row, usual_ms)
    assert row.grown_mb < 100, row
