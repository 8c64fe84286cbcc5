"""JSON bodies are parsed directly into the dataclasses of the model."""

from typing import Any

import pytest
from pydantic_core import to_json

from redsched.errors import InvalidRequest
from redsched.model import (
    Aggregate,
    ClaimStatus,
    GangMember,
    Group,
    Hints,
    HostReport,
    Inventory,
    PciDevices,
    Quota,
    Relation,
    RelationType,
    Request,
    ServerGroup,
    SharedPool,
)
from redsched.requests.parsing import parse
from redsched.requests.reports import ReportBody
from redsched.store.codec.replies import EndedPlacement, JournaledClaim

AMOUNTS = {"VCPU": 2}


def read(model: Any, body: Any, name: str = "") -> Any:
    return parse(to_json(body), model, name)


def test_a_body_gives_the_request_that_python_makes() -> None:
    body = {
        "resources": AMOUNTS,
        "zone": ["az1", "az2"],
        "member_of": [["a"], ["b", "c"]],
        "groups": [{"name": "a", "resources": AMOUNTS, "required": ["HW_CPU_X86_AVX2"]}],
        "pci": [{"class": "CUSTOM_NIC"}],
        "hints": None,
        "query": [">=", "$free.VCPU", [1]],
    }
    assert read(Request, body) == Request(
        resources=AMOUNTS,
        zones=frozenset({"az1", "az2"}),
        member_of=(frozenset({"a"}), frozenset({"b", "c"})),
        groups=(Group("a", AMOUNTS, frozenset({"HW_CPU_X86_AVX2"})),),
        pci=(PciDevices("CUSTOM_NIC"),),
        hints=Hints(),
        query=(">=", "$free.VCPU", (1,)),
    )


def test_the_body_of_a_member_has_its_name_beside_its_requirements() -> None:
    members = [{"name": "db", "count": 2, "resources": AMOUNTS, "zone": "az1"}]
    found = read(Request, {"members": members, "relations": [{"type": "apart", "members": ["db"]}]})
    db = GangMember("db", Request(resources=AMOUNTS, count=2, zones=frozenset({"az1"})))
    assert found == Request(members=(db,), relations=(Relation(RelationType.APART, ("db",)),))


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (Aggregate, {}),
        (ServerGroup, {"policy": "affinity"}),
        (SharedPool, {"inventories": {"VCPU": {"total": 1}}}),
        (HostReport, {"inventories": {"VCPU": {"total": 1}}}),
    ],
)
def test_a_body_takes_its_name_from_the_path_alone(model: Any, body: dict[str, Any]) -> None:
    assert read(model, body, "n1").name == "n1"
    with pytest.raises(InvalidRequest, match="name: is not a known field"):
        read(model, {**body, "name": "n2"}, "n1")


def test_a_report_is_one_of_the_model_and_has_what_only_agents_send() -> None:
    found: ReportBody = read(ReportBody, {"inventories": {"VCPU": {"total": 1}}, "epoch": "1-a"}, "h1")
    assert isinstance(found, HostReport)
    assert (found.name, found.inventories, found.epoch) == ("h1", {"VCPU": Inventory(1)}, "1-a")


def test_a_held_claim_is_one_of_a_journal_with_the_record_that_the_store_keeps() -> None:
    """Its fields become those of the record; defaults, and fields that the store does not keep, are omitted."""
    entry = {"id": "a", "token": "1-a.2", "state": "starting", "slots": {"VCPU": 2, "gpu0/VGPU": 1}}
    body = entry | {
        "project": "web",
        "counted": {"zone": "az1"},
        "on_exit": "keep",
        "end_reason": "expired",
        "alternates": ["h2", "h3"],
    }
    ended = {"id": "b", "token": "1-a.1", "end_reason": "failed"}
    found: ReportBody = read(ReportBody, {"inventories": {}, "claims": [entry, body], "ended": [ended]}, "h1")
    plain, claim = found.claims
    amounts = {"amount.VCPU": "2", "amount.gpu0/VGPU": "1"}
    assert isinstance(claim, JournaledClaim)
    assert (claim.id, claim.token, claim.state, plain.record) == ("a", "1-a.2", ClaimStatus.STARTING, amounts)
    about = {"project": "web", "counted.zone": "az1", "on_exit": "keep", "end_reason": "expired"}
    assert claim.record == {**amounts, "alternates": "2", **about}
    assert claim.alternates == ("h2", "h3")
    assert found.ended == (EndedPlacement("b", "1-a.1", end_reason="failed"),)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"resources": {}}, "resources is empty: "),
        ({"resources": AMOUNTS, "spread": [{"by": "zonne"}]}, "spread[0]: "),
        ({"members": [{"name": "a", "resources": AMOUNTS}, {"name": "b"}]}, "members[1]: resources is empty: "),
        ({"members": [{"name": "a", "resources": AMOUNTS, "policy": "pack"}]}, "members[0].policy: is not a known"),
        ({"resources": AMOUNTS, "pci": [{"resource_class": "CUSTOM_NIC"}]}, "pci[0].class: is required"),
        ({"resources": {"VCPU": "2"}}, "resources.VCPU: Input should be a valid integer, not '2'"),
        ([], "body: Input should be an object"),
    ],
)
def test_an_error_names_the_part_that_it_is_about(body: Any, said: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(Request, body)
    assert raised.value.detail.startswith(said)


@pytest.mark.parametrize("model", [Request, HostReport, Aggregate, Quota])
def test_python_constructs_the_model_without_pydantic(model: type) -> None:
    """Each selection constructs a request, and pydantic's validation would take longer than all its own checks."""
    assert not hasattr(model, "__pydantic_validator__")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"resources": {"VCPU": 1, "VCPU": 2}}', "body: has the key 'VCPU' twice in one object: "),
        ('{"resources": {"VCPU": 1}, "project": "a", "project": "a"}', "body: has the key 'project' twice"),
        ('{"resources": {"VCPU": 1}, "payload": [{"a": 1, "\\u0061": 2}]}', "body: has the key 'a' twice"),
    ],
)
def test_a_key_that_is_given_twice_is_refused(text: str, said: str) -> None:
    """The last one counted, so that a request was another one than its sender, or a proxy, had read."""
    with pytest.raises(InvalidRequest) as raised:
        parse(text.encode(), Request)
    assert raised.value.detail.startswith(said)


def test_the_same_key_in_different_objects_is_no_error() -> None:
    text = b'{"resources": {"VCPU": 1}, "payload": [{"a": {"a": 1}}, {"a": "a"}, "{\\"a\\": 1, \\"a\\": 2}"]}'
    assert parse(text, Request).payload == [{"a": {"a": 1}}, {"a": "a"}, '{"a": 1, "a": 2}']


@pytest.mark.parametrize("written", ["1.0", "1e0", "-2.0"])
@pytest.mark.parametrize(
    ("model", "text", "field"),
    [
        (Request, '{"resources": {"VCPU": %s}}', "resources.VCPU"),
        (Request, '{"resources": {"VCPU": 1}, "lease_s": %s}', "lease_s"),
        (Request, '{"numa": {"cells": [{"cpus": %s, "memory_mb": 1}]}}', "numa.cells[0].cpus"),
        (ReportBody, '{"inventories": {"VCPU": {"total": %s}}}', "inventories.VCPU.total"),
        (Quota, '{"limits": {"VCPU": %s}}', "limits.VCPU"),
    ],
)
def test_a_whole_number_is_written_without_a_fraction(model: Any, text: str, field: str, written: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse((text % written).encode(), model, "n1")
    value = float(written)
    assert raised.value.detail == (
        f"{field}: must be a whole number, written without a fraction or an exponent: {value:.0f}, not {value}"
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"numa": {"cells": [{"cpus": 1, "memory_mb": 0}]}}, "numa.cells[0]"),
        ({"members": [{"name": "a", "resources": {}}]}, "members[0]"),
    ],
)
def test_a_list_whose_only_item_is_wrong_is_not_too_short_as_well(body: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(Request, body)
    assert [one.field for one in raised.value.facts.errors] == [field]
    assert "more" not in raised.value.detail
