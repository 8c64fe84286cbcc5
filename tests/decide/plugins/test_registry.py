"""The plugin registry: which weighers, policies and multipliers apply, and the errors found when it is built."""

import re

import pytest

from redsched.decide.plugins.registry import multipliers, plugin_registry
from redsched.decide.scoring import POLICIES
from redsched.errors import InvalidRequest
from redsched.model import Request, Spread
from redsched.settings import Settings

NOVAS = {
    "ram": 1.0,
    "cpu": 1.0,
    "disk": 1.0,
    "io_ops": -1.0,
    "metrics": 1.0,
    "pci": 1.0,
    "soft_affinity": 1.0,
    "soft_anti_affinity": 1.0,
    "build_failure": 1000000.0,
    "cross_cell": 1000000.0,
    "hypervisor_version": 1.0,
    "num_instances": 0.0,
    "image_props": 0.0,
}


def named(request: Request, settings: Settings | None = None) -> dict[str, float]:
    found = multipliers(request, plugin_registry(settings or Settings(spare_up_to=0)))
    return {weigher.name: multiplier for weigher, multiplier in found.items()}


def test_the_request_overrules_the_settings_and_they_the_policy() -> None:
    asked = Request({"VCPU": 1}, policy="pack", weights={"spread": 0.5})
    assert named(Request({"VCPU": 1})) == {"failures": -1.0, "spread": 1.0}
    stronger = Settings(spare_up_to=0, weights={"pack": 3.0, "spread": 9.0})
    assert named(asked, stronger) == {"failures": -1.0, "pack": 3.0, "spread": 0.5}
    assert named(asked) == {"failures": -1.0, "pack": 1.0, "spread": 0.5}


def test_the_policy_nova_has_all_of_novas_weighers_with_novas_multipliers() -> None:
    assert named(Request({"VCPU": 1}), Settings(policy="nova", spare_up_to=0)) == NOVAS


def test_a_request_that_says_nothing_leaves_a_weigher_out_and_an_operator_leaves_it_to_aggregates() -> None:
    assert named(Request({"VCPU": 1}, weights={"spread": 0, "failures": 0})) == {}
    assert named(Request({"VCPU": 1}), Settings(spare_up_to=0, weights={"spread": 0})) == {
        "failures": -1.0,
        "spread": 0.0,
    }


def test_what_a_request_wishes_is_weighed_under_every_policy_unless_something_else_is_reported() -> None:
    grouped = Request({"VCPU": 1}, server_group="g", policy="pack", spread=(Spread("zone", hard=False), Spread("host")))
    wishes = {"soft_affinity": 1.0, "soft_anti_affinity": 1.0, "soft_spread": 1.0}
    assert named(grouped) == {"failures": -1.0, "pack": 1.0} | wishes
    assert named(grouped, Settings(weights={"soft_spread": 7.0}))["soft_spread"] == 7.0
    assert "soft_spread" not in named(Request({"VCPU": 1}, spread=(Spread("zone"),)))


def test_policies_of_ones_own_are_chosen_like_others() -> None:
    settings = Settings(policies={"dense": {"gpu_fragmentation": 2.0, "best_fit": 1.0}}, spare_up_to=0)
    assert named(Request({"VCPU": 1}, policy="dense"), settings) == {"gpu_fragmentation": 2.0, "best_fit": 1.0}
    assert named(Request({"VCPU": 1}), settings.model_copy(update={"policy": "dense"})).keys() >= {"best_fit"}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_names_weighers_that_there_are(name: str) -> None:
    assert named(Request({"VCPU": 1}, policy=name)) == POLICIES[name]


@pytest.mark.parametrize(
    ("policy", "stranding"),
    [("spread", 1.0), ("pack", 1.0), ("balanced", 2.0), ("gpu", 1.3), ("nova", 9.0), ("dense", 3.0), ("wary", 1.0)],
)
def test_every_policy_spares_scarce_classes_as_much_as_it_prefers_anything(policy: str, stranding: float) -> None:
    own = {"dense": {"gpu_fragmentation": 2.0, "best_fit": -1.0}, "wary": {"failures": -1.0}}
    found = named(Request({"VCPU": 1}, policy=policy), Settings(policies=own))
    assert found == {**{**POLICIES, **own}[policy], "stranding": stranding}


def test_a_policy_and_a_request_that_name_stranding_have_their_own_multiplier_of_it() -> None:
    settings = Settings(policies={"mine": {"pack": 1.0, "stranding": 0.2}})
    assert named(Request({"VCPU": 1}, policy="mine"), settings) == {"pack": 1.0, "stranding": 0.2}
    assert "stranding" not in named(Request({"VCPU": 1}, weights={"stranding": 0}), settings)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request({"VCPU": 1}, policy="best"), "unknown policy 'best': use one of balanced, gpu, nova, pack, spread"),
        (Request({"VCPU": 1}, weights={"rom": 1.0}), "unknown weigher 'rom' in weights: use one of balance, best_fit"),
    ],
)
def test_unknown_names_in_a_request_are_refused_with_the_known_ones(request_: Request, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        named(request_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "best"}, "unknown REDSCHED_POLICY 'best': use one of balanced"),
        ({"weights": {"rom": 1.0}}, "unknown weigher 'rom' in the setting weights: use one of balance"),
        ({"policies": {"mine": {"rom": 1.0}}}, "unknown weigher 'rom' in policy 'mine': use one of balance"),
        ({"policies": {"pack": {"ram": 1.0}}}, "there is a policy 'pack' already: give yours another name"),
    ],
)
def test_settings_that_name_what_is_not_there_are_refused_when_they_are_read(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        plugin_registry(Settings.model_validate(settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"gpu_shares": {}},
        {"gpu_shares": {1001: 1}},
        {"gpu_shares": {500: 0}},
        {"scarce": {"FPGA": {"VCPU": 0}}},
        {"scarce": {"FPGA": {"VCPU": "inf"}}},
        {"weights": {"ram": "nan"}},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Settings.model_validate(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scarce": {"CUSTOM_GPU_MILLI": {"VCPU": 1}}}, "set what is requested with a GPU in REDSCHED_GPU_BESIDE"),
        ({"scarce": {"fpga": {"VCPU": 4}}}, "unknown resource class 'fpga'"),
        ({"scarce": {"FPGA": {"cpu": 4}}}, "unknown resource class 'cpu'"),
        ({"scarce": {"FPGA": {}}}, 'FPGA with no other class: name some, such as {"FPGA": {"VCPU": 4}}'),
        ({"scarce": {"FPGA": {"FPGA": 1}}}, "scarce has FPGA beside itself: name other classes"),
        ({"gpu_beside": {"CUSTOM_GPU_MILLI": 1}}, "gpu_beside has CUSTOM_GPU_MILLI beside itself"),
        ({"gpu_beside": {"cpu": 8}}, "unknown resource class 'cpu'"),
    ],
)
def test_scarce_classes_that_mean_nothing_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Settings.model_validate(settings)
