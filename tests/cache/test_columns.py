"""Columns: the values of the store's flat fields, and the rules for rows, epochs and replies."""

import numpy as np
import pytest

from redsched.cache.columns import DISABLED, DRAINING, ENABLED, Columns
from redsched.cache.diff import difference
from redsched.model.validation import MAX_AMOUNT
from redsched.store.codec.replies import HostUsage
from tests.support.builders.columns import FIELDS, columns_of


def test_fields_become_the_values_of_the_row() -> None:
    columns = columns_of(h1=FIELDS)
    row = columns.row("h1")
    assert row is not None
    assert columns.name(row) == "h1"
    assert columns.version("h1") == 7
    assert (columns.alive[row], columns.attested[row], columns.status[row]) == (True, True, ENABLED)
    amounts = [columns.amounts[kind]["VCPU"].item(row) for kind in columns.amounts]
    assert amounts == [64, 3, 1, 2, 32, 2]
    assert columns.zones.text(row) == "az1"
    assert columns.traits["HW_CPU_X86_AVX2"][row]
    assert columns.labels["rack.row"].text(row) == "r4"
    assert columns.metrics["cpu.percent"][row] == 12.5
    assert (columns.claims[row], columns.starting[row], columns.failures[row]) == (3, 1, 2)
    assert columns.aggregates["fast"][row]
    assert not columns.aggregates["slow"][row]


def test_pools_are_slots_of_the_families_and_a_tree() -> None:
    columns = columns_of(h1=FIELDS)
    row = columns.row("h1")
    assert row is not None
    slot = "gpu0/CUSTOM_GPU_MILLI"
    assert columns.pool_slots("CUSTOM_GPU_MILLI") == (slot,)
    assert (columns.capacity[slot][row], columns.claimed[slot][row]) == (1000, 250)
    assert columns.pools_with_trait("CUSTOM_GPU_T4") == ("gpu0/CUSTOM_GPU_T4",)
    assert columns.traits["gpu0/CUSTOM_GPU_T4"][row]
    assert columns.layout(row).above("gpu0") == ("numa0", "")
    assert columns.pool_slots("VCPU") == (), "the root is no pool"
    assert columns.pools_with_trait("HW_CPU_X86_AVX2") == ()


def test_pool_slots_come_in_natural_order_and_new_ones_join() -> None:
    columns = columns_of(h1={f"capacity.gpu{number}/VGPU": "1" for number in (10, 2)})
    assert columns.pool_slots("VGPU") == ("gpu2/VGPU", "gpu10/VGPU")
    columns.put("h2", {"capacity.gpu1/VGPU": "1", "capacity.gpu1/PGPU": "1"})
    assert columns.pool_slots("VGPU") == ("gpu1/VGPU", "gpu2/VGPU", "gpu10/VGPU")


def test_hosts_that_are_built_alike_share_a_layout_and_a_changed_one_leaves_it() -> None:
    columns = columns_of(h1=FIELDS, h2=FIELDS | {"capacity.gpu0/CUSTOM_GPU_MILLI": "500"})
    one, other = columns.row("h1"), columns.row("h2")
    assert one is not None
    assert other is not None
    assert columns.layout(one) is columns.layout(other)
    columns.patch("h2", {"version": "8", "pool.gpu0": "/"})
    assert columns.layout(one).above("gpu0") == ("numa0", "")
    assert columns.layout(other).above("gpu0") == ("",)
    columns.patch("h2", {"version": "9", "pool.gpu0": "numa0"})
    assert columns.layout(one) is columns.layout(other)


def test_domains_are_hosts_zones_and_label_values() -> None:
    columns = columns_of(h1=FIELDS, h2={"version": "1"})
    one, other = columns.row("h1"), columns.row("h2")
    assert one is not None
    assert other is not None
    assert [columns.domain(by, one) for by in ("host", "zone", "label:rack.row")] == ["h1", "az1", "r4"]
    assert [columns.domain(by, other) for by in ("host", "zone", "label:rack.row")] == ["h2", "", ""]
    assert columns.domain("label:unreported", one) == ""
    assert columns.texts("label:unreported") is None
    assert columns.texts("label:rack.row") is columns.labels["rack.row"]


def test_unreadable_counts_reach_every_limit_and_outweigh_nobody() -> None:
    columns = columns_of(h1={"claims": "x", "starting": "-1", "failures": "many"})
    row = columns.row("h1")
    assert row is not None
    assert [counts.item(row) for counts in (columns.claims, columns.starting)] == [MAX_AMOUNT, MAX_AMOUNT]
    assert columns.failures.item(row) == 0


def test_absent_fields_read_as_their_defaults() -> None:
    columns = columns_of(h1={"version": "1"})
    row = columns.row("h1")
    assert row is not None
    assert [family["VCPU"].item(row) for family in columns.amounts.values()] == [0, 0, 0, 1, MAX_AMOUNT, 1]
    assert (columns.alive[row], columns.attested[row], columns.status[row]) == (False, False, DISABLED)
    assert columns.zones.text(row) == ""
    assert not columns.traits["CUSTOM_A"][row]
    assert np.isnan(columns.metrics["cpu.percent"][row])


@pytest.mark.parametrize("text", ["x", "1.5", "-1", "1_0", " 1", "²", "\u0663", str(2**53), "9" * 40])
def test_an_unreadable_amount_admits_nothing(text: str) -> None:
    kinds = ("capacity", "claimed", "external", "min", "max", "step")
    columns = columns_of(h1={f"{kind}.VCPU": text for kind in kinds})
    row = columns.row("h1")
    assert row is not None
    values = [family["VCPU"].item(row) for family in columns.amounts.values()]
    assert values == [0, MAX_AMOUNT, MAX_AMOUNT, MAX_AMOUNT, 0, MAX_AMOUNT]


def test_an_unreadable_metric_is_absent_and_a_step_of_nothing_never_divides() -> None:
    columns = columns_of(h1={"metric.load": "high", "step.VCPU": "0"})
    assert difference(columns, columns_of(h1={"step.VCPU": str(MAX_AMOUNT)})) == []


def test_put_replaces_the_host_whole() -> None:
    columns = columns_of(h1=FIELDS)
    columns.put("h1", {"version": "8"})
    assert difference(columns, columns_of(h1={"version": "8"})) == []


def test_patch_sets_only_what_it_names_and_an_empty_value_removes() -> None:
    columns = columns_of(h1=FIELDS)
    gone = ["trait.HW_CPU_X86_AVX2", "label.rack.row", "metric.cpu.percent", "max.VCPU", "zone", "claims", "pool.gpu0"]
    gone += ["aggregate.fast", "capacity.gpu0/CUSTOM_GPU_MILLI", "trait.gpu0/CUSTOM_GPU_T4"]
    columns.patch("h1", {"version": "8", "claimed.VCPU": "5", "status": "draining", **dict.fromkeys(gone, "")})
    expected = {name: value for name, value in FIELDS.items() if name not in gone}
    expected |= {"version": "8", "claimed.VCPU": "5", "status": "draining"}
    assert difference(columns, columns_of(h1=expected)) == []
    assert columns.status[columns.row("h1")] == DRAINING


def test_patch_of_an_unknown_host_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        columns_of().patch("h1", {"version": "2"})


def test_a_removed_host_leaves_nothing_to_the_next_one_in_its_row() -> None:
    columns = columns_of(h1=FIELDS)
    row = columns.row("h1")
    columns.remove("h1")
    columns.remove("h1")
    assert (len(columns), columns.row("h1"), columns.version("h1"), columns.names()) == (0, None, None, [])
    columns.put("h2", {"version": "1"})
    assert columns.row("h2") == row
    assert difference(columns, columns_of(h2={"version": "1"})) == []


def test_growing_keeps_every_value() -> None:
    small, large = Columns(1), Columns(1000)
    for columns in (small, large):
        columns.set_epoch("1-a")
        for number in range(300):
            columns.put(f"h{number}", FIELDS | {"version": str(number), f"label.k{number % 5}": str(number % 7)})
    assert small.size != large.size
    assert difference(small, large) == []


def test_a_new_epoch_takes_attestation_from_hosts_of_another_one() -> None:
    columns = columns_of(h1=FIELDS, h2=FIELDS | {"epoch": "2-b"})
    assert attested(columns) == ["h1"]
    columns.set_epoch("2-b")
    assert attested(columns) == ["h2"]
    columns.patch("h1", {"epoch": "2-b"})
    assert attested(columns) == ["h1", "h2"]


def test_no_epoch_attests_no_one() -> None:
    columns = Columns()
    columns.put("h1", {"epoch": ""})
    assert attested(columns) == []


def attested(columns: Columns) -> list[str]:
    return [name for name in columns.names() if columns.attested[columns.row(name)]]


def places(columns: Columns) -> dict[str, int]:
    return {name: columns.order.item(row) for name in columns.names() if (row := columns.row(name)) is not None}


def test_order_follows_the_names_through_adding_and_removing() -> None:
    columns = columns_of(h3=FIELDS, h1=FIELDS, h2=FIELDS)
    assert places(columns) == {"h1": 0, "h2": 1, "h3": 2}
    columns.remove("h2")
    assert places(columns) == {"h1": 0, "h3": 1}
    columns.put("h0", FIELDS)
    assert places(columns) == {"h0": 0, "h1": 1, "h3": 2}


CLAIMED = {"claimed.VCPU": "9", "claims": "5", "starting": "2"}


def seen(version: int, host: str = "h1") -> HostUsage:
    return HostUsage(host, version, "", {"VCPU": 9}, 5, 2)


def test_the_next_reply_moves_the_version() -> None:
    columns = columns_of(h1=FIELDS)
    assert columns.from_reply(seen(8), "1-a")
    assert difference(columns, columns_of(h1=FIELDS | CLAIMED | {"version": "8"})) == []


def test_a_reply_that_skips_versions_leaves_the_version_to_the_feed() -> None:
    columns = columns_of(h1=FIELDS)
    assert columns.from_reply(seen(9), "1-a")
    assert columns.from_reply(seen(8), "1-a", written=0)
    assert difference(columns, columns_of(h1=FIELDS | CLAIMED)) == []


@pytest.mark.parametrize(("host", "version", "epoch"), [("h1", 7, "1-a"), ("h1", 8, "0-z"), ("h9", 8, "1-a")])
def test_an_old_reply_or_one_of_another_epoch_or_host_changes_nothing(host: str, version: int, epoch: str) -> None:
    columns = columns_of(h1=FIELDS)
    assert not columns.from_reply(seen(version, host), epoch)
    assert difference(columns, columns_of(h1=FIELDS)) == []


def test_columns_that_no_host_uses_any_longer_are_given_back() -> None:
    """A report of many slots kept its columns, each as long as the fleet, in every scheduler for ever."""
    columns = Columns()
    usual = {"version": "1", "capacity.VCPU": "8", "trait.A": "1", "metric.m": "1.5"}
    many = {f"capacity.gpu{number}/CUSTOM_GPU": "4" for number in range(200)}
    many |= {f"trait.T{number}": "1" for number in range(200)} | {f"metric.m{number}": "2" for number in range(200)}
    columns.put("h1", usual | many)
    columns.put("h2", usual)
    assert len(columns.capacity) == 201
    assert len(columns.pool_slots("CUSTOM_GPU")) == 200
    columns.put("h1", usual)
    columns.give_back()
    assert (list(columns.capacity), list(columns.traits), list(columns.metrics)) == (["VCPU"], ["A"], ["m"])
    assert columns.pool_slots("CUSTOM_GPU") == ()
    assert columns.capacity["gpu7/CUSTOM_GPU"].tolist() == [0] * columns.size
    columns.put("h2", usual | {"capacity.gpu7/CUSTOM_GPU": "3"})
    assert columns.pool_slots("CUSTOM_GPU") == ("gpu7/CUSTOM_GPU",)
    assert columns.capacity["gpu7/CUSTOM_GPU"][columns.row("h2")] == 3


def test_a_large_cell_is_checked_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.cache.columns.CHECKED_VALUES", 64 * 50)
    columns = Columns(64)
    columns.put("h1", {"version": "1"} | {f"trait.T{number}": "1" for number in range(120)})
    columns.put("h1", {"version": "2", "trait.T7": "1"})
    left = []
    for _ in range(3):
        columns.give_back()
        left.append(len(columns.traits))
    assert left == [71, 21, 1]


def test_hosts_are_found_by_any_value_of_each_filter() -> None:
    down = FIELDS | {"alive": "0", "zone": "az2", "aggregate.fast": "", "label.rack.row": "r5"}
    columns = columns_of(h1=FIELDS, h2=down)
    assert columns.names_where() == ["h1", "h2"]
    assert columns.names_where(status="down") == columns.names_where(zone="az2") == ["h2"]
    assert columns.names_where(status=("down", "enabled")) == ["h1", "h2"]
    assert columns.names_where(aggregate=("fast", "slow")) == columns.names_where(label="rack.row=r4") == ["h1"]
    assert columns.names_where(label=("rack.row=r4", "rack.row=r5")) == ["h1", "h2"]
    assert columns.names_where(label="rack=r4") == columns.names_where(label="rack.row=r9") == []
    assert columns.names_where(trait="HW_CPU_X86_AVX2", zone="az2") == ["h2"]
    assert columns.names_where(trait="CUSTOM_NONE") == []
