"""Which changes may have made room for a refused request: only those of hosts that pass its rules."""

from random import Random

from benchmarks.fleet_of_pools import APART, SHARES, make_cell, make_counts, make_fleet
from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Group, Request
from redsched.settings import Settings
from redsched.store.codec.replies import HostUsage


def fleet(hosts: int = 40) -> Columns:
    rng = Random(hosts)
    made = make_fleet(hosts, rng)
    return make_cell(made, make_counts(made, rng))


def set_claimed(columns: Columns, row: int, **claimed: int) -> None:
    host = columns.name(row)
    version = columns.version(host)
    assert version is not None
    assert columns.from_reply(HostUsage(host, version + 1, "", claimed, 1, 0), columns.epoch)


def test_only_room_for_the_request_matters() -> None:
    """The first call says yes, as nothing is known. A host that filled up, or has too little, does not matter."""
    columns = fleet()
    row = int(columns.alive.argmax())
    gains = Decider(columns, Settings()).gains(Request({"VCPU": 500}))
    assert gains.may_matter()
    assert not gains.may_matter()
    set_claimed(columns, row, VCPU=500)
    assert not gains.may_matter()
    set_claimed(columns, row, VCPU=0)
    assert gains.may_matter()
    assert not gains.may_matter()


def test_requests_of_groups_of_servers_are_decided_again() -> None:
    """A member that ends on one host changes what the rule says about others."""
    columns = fleet()
    gains = Decider(columns, Settings()).gains(Request({"VCPU": 1}, server_group=APART))
    assert gains.may_matter()
    assert gains.may_matter()


def test_a_change_that_lets_it_fit_is_never_missed() -> None:
    """Random changes, compared with a decision after each."""
    columns, rng = fleet(), Random(1)
    decider = Decider(columns, Settings())
    requests = [
        Request({"VCPU": 400}),
        Request({"VCPU": 300, "MEMORY_MB": 1_500_000}, count=3),
        Request({"VCPU": 480}, groups=(Group("g", {SHARES: 900}),)),
    ]
    gains = [decider.gains(one) for one in requests]
    fitted = [False] * len(requests)
    for _ in range(300):
        row = rng.randrange(40)
        set_claimed(columns, row, VCPU=rng.randrange(512), MEMORY_MB=rng.randrange(2_097_152))
        for number, request in enumerate(requests):
            may = gains[number].may_matter()
            fits = bool(decider.decide(request, Random(0)).places)
            assert may or not fits or fitted[number]
            fitted[number] = fits
    assert any(fitted)
