"""`redsched host list --fits`: the hosts with room for amounts, over the store and over REST."""

import pytest

from tests.cli.conftest import Redsched

BOTH_LINKS = True


def names(redsched: Redsched, *arguments: str) -> list[str]:
    return redsched("host", "list", "-o", "name", *arguments).check().output.split()


def test_hosts_with_room_are_listed(redsched: Redsched) -> None:
    """h1 has 8 VCPU and 16 GiB, h2 has 4 VCPU and no memory."""
    assert names(redsched, "--fits", "VCPU=4") == ["h1", "h2"]
    assert names(redsched, "--fits", "VCPU=5") == ["h1"]
    assert names(redsched, "--fits", "VCPU=1", "--fits", "MEMORY_MB=4Gi") == ["h1"]
    assert names(redsched, "--fits", "VCPU=1", "--zone", "az2") == ["h2"]
    assert names(redsched, "--fits", "CUSTOM_LICENCE=1") == []


def test_what_is_claimed_and_hosts_that_take_no_claims_are_no_room(redsched: Redsched) -> None:
    redsched("select", "VCPU=6", "--host", "h1", "--id", "big").check()
    assert names(redsched, "--fits", "VCPU=3") == ["h2"]
    redsched("host", "disable", "h2").check()
    assert names(redsched, "--fits", "VCPU=3") == []
    assert names(redsched, "--fits", "VCPU=2") == ["h1"]


@pytest.mark.parametrize("given", ["VCPU", "VCPU=", "VCPU=-1", "VCPU=0", "vcpu=2"])
def test_bad_amounts_are_refused(redsched: Redsched, given: str) -> None:
    redsched("host", "list", "--fits", given).check_failed(2)


def test_a_class_is_given_once(redsched: Redsched) -> None:
    redsched("host", "list", "--fits", "VCPU=2", "--fits", "VCPU=3").check_failed(2, "VCPU", "given twice")
