"""The line with which a command is refused: the rule, its value and what would help, over the store and over REST."""

import re

import pytest
import redis

from redsched.model import HostReport, Inventory
from tests.cli.conftest import Redsched, report_all

BOTH_LINKS = True


@pytest.fixture
def stepped(redsched: Redsched, store: str) -> Redsched:
    """Return the function that runs commands, on a fleet whose h3 gives VCPU in steps of 4."""
    report_all(store, [HostReport("h3", {"VCPU": Inventory(8, step_size=4)}, zone="az2", lease_s=3600)])
    return redsched


def test_a_step_size_is_named_with_the_amounts_that_fit(stepped: Redsched) -> None:
    stepped("select", "VCPU=6", "--host", "h3").check_failed(
        3, "1 by step_size of VCPU; nearest h3: 4 or 8 VCPU instead of 6 (step_size 4)"
    )
    explained = stepped("explain", "VCPU=6", "--host", "h3").output
    assert "step_size:VCPU\t1\n" in explained
    assert "nearest: h3 needs VCPU=6, free VCPU=8; fits: 4 or 8 VCPU instead of 6 (step_size 4)" in explained
    stepped("select", "VCPU=8", "--host", "h3", "--id", "mine").check()
    stepped("claim", "resize", "mine", "VCPU=6").check_failed(
        3, "the step_size of VCPU on host h3 is 4, which forbids 6 VCPU", "request 4 VCPU, or keep the 8 that it has"
    )
    assert stepped("claim", "resize", "mine", "VCPU=4").check().output == "mine holds VCPU=4 of h3\n"


def test_a_spread_is_named_with_the_count_that_fits(redsched: Redsched) -> None:
    places = ("VCPU=2", "--spread", "zone")
    says = "spreading over zone (max_skew 1): az2 has room for 2, az1 has room for 4; count=5 fits, or 6 without it"
    redsched("select", *places, "--count", "6").check_failed(3, "2 by spread:zone", says)
    assert f"{says}\n" in redsched("explain", *places, "--count", "6").output
    redsched("select", *places, "--count", "5").check()


@pytest.mark.usefixtures("needs_both")
def test_a_store_that_is_out_of_memory_is_named(redsched: Redsched, store: str) -> None:
    redsched("select", "VCPU=2", "--id", "mine").check()
    with redis.Redis.from_url(store, protocol=2) as client:
        client.config_set("maxmemory", 1)
        try:
            redsched("select", "VCPU=2").check_failed(
                5, "is out of memory (it uses ", "MiB, and its maxmemory is 0.0 MiB"
            )
            status = redsched("status").output
            redsched("host", "disable", "h2").check()
            redsched("claim", "release", "mine").check()
        finally:
            client.config_set("maxmemory", 0)
    assert "! the store is out of memory (it uses " in status
    assert re.search(r"\n    redis-cli CONFIG SET maxmemory [1-9]\d*mb\n", status)
