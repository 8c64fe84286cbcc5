"""The filters: what each removes, under which reason, and what it says of a host."""

from typing import Any

import pytest

from redsched.cache.columns import Columns
from redsched.decide import Decider, HostCheck
from redsched.model import Request
from redsched.settings import Settings
from tests.support.columns import FIELDS, columns_of

HOST = FIELDS | {"min.VCPU": "", "max.VCPU": "", "step.VCPU": ""}


def check(columns: Columns, host: str = "h1", **conditions: Any) -> HostCheck:
    request = Request(**({"resources": {"VCPU": 4}} | conditions))
    return Decider(columns, Settings()).explain(request, host).checks[0]


@pytest.mark.parametrize(
    ("fields", "conditions", "reason", "detail"),
    [
        ({"alive": "0"}, {}, "down", "no heartbeat within its lease"),
        ({"epoch": "0-z"}, {}, "not-attested", "attested to epoch 0-z, the cell's is 1-a"),
        ({"epoch": ""}, {}, "not-attested", "attested to epoch none, the cell's is 1-a"),
        ({"status": "disabled"}, {}, "disabled", "disabled"),
        ({"status": "draining"}, {}, "draining", "draining"),
        ({}, {"zones": frozenset({"az2", "az3"})}, "zone", "needs zone az2 or az3, is az1"),
        ({"zone": ""}, {"zones": frozenset({"az2"})}, "zone", "needs zone az2, is none"),
        ({}, {"hosts": frozenset({"h2"})}, "hosts", "is none of the hosts asked for"),
        ({}, {"exclude_hosts": frozenset({"h1"})}, "exclude_hosts", "is one of the excluded hosts"),
        ({}, {"required": frozenset({"CUSTOM_A"})}, "required:CUSTOM_A", "needs CUSTOM_A, does not have it"),
        (
            {},
            {"forbidden": frozenset({"HW_CPU_X86_AVX2"})},
            "forbidden:HW_CPU_X86_AVX2",
            "must not have HW_CPU_X86_AVX2, has it",
        ),
        (
            {},
            {"any_of": (frozenset({"CUSTOM_B", "CUSTOM_A"}),)},
            "any_of:CUSTOM_A,CUSTOM_B",
            "needs CUSTOM_A or CUSTOM_B, has none of them",
        ),
        ({}, {"labels": {"rack.row": "r5"}}, "labels:rack.row", "needs rack.row=r5, has r4"),
        ({}, {"labels": {"floor": "1"}}, "labels:floor", "needs floor=1, has no such label"),
        ({"claimed.VCPU": "61"}, {}, "VCPU", "needs 4 VCPU, free 2"),
        ({"claimed.VCPU": "70"}, {}, "VCPU", "needs 4 VCPU, free -7"),
        ({"min.VCPU": "6", "max.VCPU": "9"}, {}, "VCPU", "needs 4 VCPU, free 60; one claim may take 6 to 9"),
        ({"step.VCPU": "3"}, {}, "VCPU", "needs 4 VCPU, free 60; only multiples of 3"),
        ({}, {"resources": {"CUSTOM_GPU": 1}}, "CUSTOM_GPU", "needs 1 CUSTOM_GPU, free 0"),
    ],
)
def test_a_host_that_fails_one_check_is_told_which_and_why(
    fields: dict[str, str], conditions: dict[str, Any], reason: str, detail: str
) -> None:
    found = check(columns_of(h1=HOST | fields), "h1", **conditions)
    assert found.reason == reason
    assert [one.detail for one in found.checks if not one.ok] == [detail]


def test_a_host_that_fits_passes_every_check() -> None:
    found = check(
        columns_of(h1=HOST),
        zones=frozenset({"az1"}),
        hosts=frozenset({"h1"}),
        exclude_hosts=frozenset({"h2"}),
        required=frozenset({"HW_CPU_X86_AVX2"}),
        forbidden=frozenset({"CUSTOM_A"}),
        any_of=(frozenset({"CUSTOM_A", "HW_CPU_X86_AVX2"}),),
        labels={"rack.row": "r4"},
    )
    assert found.reason is None
    assert len(found.checks) == 16
    assert all(one.ok for one in found.checks)


def test_a_host_counts_once_under_the_first_reason() -> None:
    columns = columns_of(h1=HOST | {"alive": "0", "claimed.VCPU": "64"}, h2=HOST | {"claimed.VCPU": "64"}, h3=HOST)
    explanation = Decider(columns, Settings()).explain(Request({"VCPU": 4}))
    assert [(count.reason, count.hosts) for count in explanation.reasons] == [("down", 1), ("VCPU", 1)]
    assert (explanation.hosts, explanation.fits) == (3, 1)


def test_a_label_asked_for_as_empty_is_one_that_the_host_lacks() -> None:
    columns = columns_of(h1=HOST, h2=HOST | {"label.rack.row": ""})
    assert check(columns, "h1", labels={"rack.row": ""}).reason == "labels:rack.row"
    assert check(columns, "h2", labels={"rack.row": ""}).reason is None
    assert check(columns, "h1", labels={"floor": ""}).reason is None


def test_codes_used_again_are_not_taken_for_what_they_were() -> None:
    columns = columns_of(h1=HOST | {"zone": "old"}, h2=HOST)
    decider, request = Decider(columns, Settings()), Request({"VCPU": 4}, zones=frozenset({"old"}))
    assert decider.explain(request).fits == 1
    columns.patch("h1", {"zone": ""})
    columns.patch("h2", {"zone": "new"})
    assert decider.explain(request).fits == 0
