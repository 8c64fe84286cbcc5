"""The GPU fragmentation weigher: how much is lost to which requests, and from which GPU a part is taken."""

import pytest

from redsched.cache.columns import Columns
from redsched.model import Group, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import raw_of, weigher

HALVES = Settings(gpu_shares={500: 1.0, 1000: 1.0})


def gpus(*left: int) -> dict[str, str]:
    """Return a host whose GPUs have this much left."""
    fields = {"capacity.VCPU": "64"}
    for number, rest in enumerate(left):
        slot = f"gpu{number}/CUSTOM_GPU_MILLI"
        fields |= {f"capacity.{slot}": "1000", f"claimed.{slot}": str(1000 - rest)}
    return fields


def share(*amounts: int) -> Request:
    return Request({"VCPU": 1}, groups=tuple(Group(str(n), {"CUSTOM_GPU_MILLI": a}) for n, a in enumerate(amounts)))


def raw(columns: Columns, request: Request) -> dict[str, float]:
    return raw_of(weigher("gpu_fragmentation", HALVES), columns, request)


def test_a_rest_is_lost_to_the_shares_that_are_larger() -> None:
    # Of a rest of 500 half is lost (to requests for a whole GPU), of 400 all; of 0 and of a whole GPU nothing.
    columns = columns_of(whole=gpus(1000), half=gpus(500), little=gpus(400))
    grown = {"whole": 400, "half": 200 - 250, "little": 0 - 400}
    # Placing 600 leaves 400, which no request can use; 300 leaves 200; 400 leaves nothing.
    assert raw(columns, share(600))["whole"] == 0.5 - grown["whole"] / 2000
    assert raw(columns, share(300))["half"] == 0.5 - grown["half"] / 2000
    assert raw(columns, share(400))["little"] == 0.5 - grown["little"] / 2000


def test_a_whole_gpu_loses_nothing_on_a_whole_one() -> None:
    assert raw(columns_of(h1=gpus(1000, 300)), share(1000)) == {"h1": 0.5}


def test_each_part_goes_to_the_gpu_where_it_loses_least() -> None:
    # 400 fits the rest of 400 exactly (400 less are lost) rather than the whole GPU.
    assert raw(columns_of(h1=gpus(1000, 400)), share(400)) == {"h1": 0.5 + 400 / 2000}
    # The second share has to break the whole GPU: 600 are left, half of them lost.
    assert raw(columns_of(h1=gpus(1000, 400)), share(400, 400)) == {"h1": 0.5 - (300 - 400) / 4000}


def test_unnumbered_shares_are_taken_by_whole_gpus() -> None:
    columns = columns_of(h1=gpus(1000, 1000, 1000))
    assert raw(columns, Request({"CUSTOM_GPU_MILLI": 2500})) == {"h1": pytest.approx(0.5 - 250 / 6000)}


def test_hosts_are_ordered_by_what_they_lose() -> None:
    columns = columns_of(exact=gpus(300, 1000), breaks=gpus(1000, 1000), uses=gpus(450, 450))
    found = raw(columns, share(300))
    assert sorted(found, key=lambda host: found[host], reverse=True) == ["exact", "uses", "breaks"]


def test_how_common_a_share_is_counts() -> None:
    columns = columns_of(h1=gpus(1000))
    rare = weigher("gpu_fragmentation", Settings(gpu_shares={500: 3.0, 1000: 1.0}))
    assert raw_of(rare, columns, share(500)) == {"h1": 0.5 - 500 * 0.25 / 2000}


def test_requests_without_shares_and_shares_that_fit_no_gpu_lose_nothing() -> None:
    columns = columns_of(h1=gpus(300), h2={"capacity.VCPU": "64"})
    assert raw(columns, Request({"VCPU": 1})) == {"h1": 0.5, "h2": 0.5}
    assert raw(columns, share(600)) == {"h1": 0.5, "h2": 0.5}
    assert raw(columns, share(4000)) == {"h1": 0.5, "h2": 0.5}
