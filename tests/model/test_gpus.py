"""The short form of GPUs: which groups it has made, and the words for them."""

import pytest

from redsched.model import Group, PciDevices, ReasonCount, Request
from redsched.model.gpus import amount_text, gpus_of, in_words, lack_text, short_form, word_of
from redsched.model.workload import GPU_SHARES

WHOLE = tuple(Group(f"gpu{number}", {GPU_SHARES: 1000}) for number in range(3))


@pytest.mark.parametrize(
    ("groups", "form"),
    [
        (WHOLE, "GPU=3"),
        (WHOLE[:1], "GPU=1"),
        ((Group("gpu0", {GPU_SHARES: 125}),), "GPU=0.125"),
        ((*WHOLE[:2], Group("nic0", {"SRIOV_NET_VF": 1})), "GPU=2"),
    ],
)
def test_groups_that_the_short_form_makes_are_found(groups: tuple[Group, ...], form: str) -> None:
    assert short_form(gpus_of(Request(groups=groups))) == form


@pytest.mark.parametrize(
    "groups",
    [
        (),
        (Group("a", {GPU_SHARES: 1000}),),
        WHOLE[1:],
        tuple(Group(one.name, {GPU_SHARES: 500}) for one in WHOLE),
        (WHOLE[0], Group("gpu1", {GPU_SHARES: 1000, "VCPU": 1})),
        (WHOLE[0], Group("gpu1", {GPU_SHARES: 1000}, required=frozenset(("CUSTOM_T4",)))),
        (Group("gpu0", {"VCPU": 1}),),
        (Group("gpu0", {GPU_SHARES: 2000}),),
    ],
)
def test_other_groups_keep_their_names(groups: tuple[Group, ...]) -> None:
    """Also those that only look like GPUs: the short form never makes them."""
    request = Request({"VCPU": 1}, groups=groups)
    assert gpus_of(request) == ()
    assert word_of(request, "group:gpu0") == "group:gpu0"


def test_the_reasons_of_hosts_are_counted_in_the_words_of_the_short_form() -> None:
    counts = [
        ReasonCount("zone", 1),
        ReasonCount("group:gpu0", 2),
        ReasonCount("group:gpu1", 3),
        ReasonCount("pools", 4),
    ]
    request = Request({"VCPU": 1}, groups=WHOLE)
    assert in_words(request, counts) == (ReasonCount("zone", 1), ReasonCount("GPU", 9))


@pytest.mark.parametrize(
    "more",
    [
        {"pci": (PciDevices("SRIOV_NET_VF", 1),)},
        {"required": frozenset(("CUSTOM_T4",))},
        {"groups": (*WHOLE, Group("nic0", {"SRIOV_NET_VF": 1}))},
        {"group_policy": "isolate"},
        {"resources": {GPU_SHARES: 10}},
    ],
)
def test_pools_are_short_of_gpus_only_if_nothing_else_can_be_wrong_with_them(more: dict[str, object]) -> None:
    assert word_of(Request(**{"groups": WHOLE} | more), "pools") == "pools"  # type: ignore[arg-type]  # fields by name


def test_amounts_of_gpus_are_said_in_gpus() -> None:
    assert [amount_text(GPU_SHARES, amount) for amount in (0, 500, 1000, 3500)] == [
        "0 GPUs",
        "0.5 GPU",
        "1 GPU",
        "3.5 GPUs",
    ]
    assert amount_text("VCPU", 1000) == "1000 VCPU"
    assert lack_text(4000, 3000, 3500, 4000) == "needs 4 GPUs, 3 whole ones free (3.5 of 4 in all)"
    assert lack_text(700, 0, 2000, 4000) == "needs 0.7 of one GPU, which none has free (2 of 4 in all)"
