"""The data classes of the model: each rejects invalid values with an error that names them."""

from hashlib import blake2b

import pytest

from redsched.errors import InvalidRequest
from redsched.model import CpuPolicy, HostReport, Inventory, Numa, NumaCell, Request, Token
from redsched.model.validation import MAX_AMOUNT


@pytest.mark.parametrize(
    ("inventory", "capacity"),
    [
        (Inventory(16), 16),
        (Inventory(16, reserved=2, allocation_ratio=4.0), 56),
        (Inventory(100, allocation_ratio=1.15), 115),
        (Inventory(10, allocation_ratio=0.99), 9),
        (Inventory(4, reserved=9), 0),
        (Inventory(MAX_AMOUNT), MAX_AMOUNT),
    ],
)
def test_capacity_is_exact(inventory: Inventory, capacity: int) -> None:
    """floor((total - reserved) x ratio) is exact in decimal: 100 x 1.15 is 115, unlike in binary floating point."""
    assert inventory.capacity == capacity


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"resources": {}}, "resources is empty"),
        ({"resources": {"VCPU": 0}}, "VCPU must be a whole number from 1"),
        ({"resources": {"VCPU": True}}, "not True"),
        ({"resources": {"VCPU": 10**5000}}, "more than 40 digits"),
        ({"resources": {"VCPUS": 1}}, "unknown resource class 'VCPUS'"),
        ({"resources": {f"CUSTOM_{n}": 1 for n in range(65)}}, "65 entries: at most 64"),
        ({"required": frozenset({"AVX2"})}, "unknown trait 'AVX2'"),
        ({"any_of": (frozenset(),)}, "any_of has an empty list"),
        ({"any_of": (frozenset({"FAST"}),)}, "unknown trait 'FAST'"),
        ({"hosts": frozenset({"a/b"})}, "host 'a/b' is not a name"),
        ({"labels": {"k": "v\n"}}, "label 'k' has the condition"),
        ({"count": 201}, "count must be a whole number from 1 to 200"),
        ({"alternates": 51}, "alternates must be a whole number from 0 to 50"),
        ({"until": "done"}, "until must be claimed or active, not 'done'"),
        ({"queue_timeout_s": 3601}, "queue_timeout_s must be a whole number from 0 to 3600"),
        ({"until": "active", "confirm_timeout_s": -1}, "confirm_timeout_s must be a whole number from 0 to 3600"),
        ({"confirm_timeout_s": 5}, "confirm_timeout_s requires until: active"),
        ({"lease_s": 0}, "lease_s must be a whole number from 1"),
        ({"lease_s": True}, "not True"),
        ({"zones": frozenset({"a/b"})}, "zone 'a/b' is not a name"),
        ({"project": "a b"}, "project 'a b' is not a name"),
        ({"consumer": "a b"}, "consumer 'a b' is not a name"),
        ({"count": True}, "count must be a whole number from 1 to 200, not True"),
        ({"alternates": False}, "alternates must be a whole number from 0 to 50, not False"),
        ({"claim_ids": ("a",), "count": 2}, "1 ids for 2 places"),
        ({"claim_ids": ("a", "a"), "count": 2}, "has an id twice"),
        ({"claim_ids": ("rs:{c1}",)}, "claim id 'rs:{c1}' is not a name"),
        ({"weights": {"spread": 1e9}}, "must be between"),
    ],
)
def test_a_request_says_what_is_wrong_with_it(fields: dict[str, object], says: str) -> None:
    """The error is one sentence, which contains the wrong value. A request with a rare field is checked elsewhere."""
    for rare in ({}, {"policy": "spread"}):
        with pytest.raises(InvalidRequest) as refused:
            Request(**({"resources": {"VCPU": 1}} | fields | rare))  # type: ignore[arg-type]
        assert says in refused.value.detail


def test_the_digest_is_of_what_is_asked_for_and_for_whom() -> None:
    """It does not depend on the ids, the number of alternates, or the order of names."""
    one = Request({"VCPU": 1, "MEMORY_MB": 2}, any_of=(frozenset({"CUSTOM_A"}), frozenset({"CUSTOM_B"})))
    same = Request(
        {"MEMORY_MB": 2, "VCPU": 1},
        any_of=(frozenset({"CUSTOM_B"}), frozenset({"CUSTOM_A"})),
        claim_ids=("mine",),
        alternates=3,
    )
    assert one.digest() == same.digest()
    others = [
        Request({"VCPU": 1, "MEMORY_MB": 2}),
        Request({"VCPU": 1, "MEMORY_MB": 3}),
        Request({"VCPU": 1, "MEMORY_MB": 2}, project="web"),
        Request({"VCPU": 1, "MEMORY_MB": 2}, consumer="web"),
        Request({"VCPU": 1, "MEMORY_MB": 2}, count=2),
        Request({"VCPU": 1, "MEMORY_MB": 2}, lease_s=60),
        Request({"VCPU": 1, "MEMORY_MB": 2}, zones=frozenset({"CUSTOM_A"})),
        Request({"VCPU": 1, "MEMORY_MB": 2}, required=frozenset({"CUSTOM_A"})),
    ]
    assert len({one.digest(), *(other.digest() for other in others)}) == len(others) + 1


def test_shape_and_digest_are_canonical_in_every_part() -> None:
    """Claims keep the digest, so every release must compute the same one; fields with their defaults are omitted."""
    one = Request(
        {"VCPU": 1},
        zones=frozenset({"b", "a"}),
        numa=Numa((NumaCell(2, 512),), CpuPolicy.DEDICATED),
        query=("=", "$free_ram_mb", 2.5),
        labels={},
        weights={"spread": 2.0},
        members=(),
        consumer="web",
        claim_ids=("mine",),
    )
    asked = (
        '"numa":{"cells":[{"cpus":2,"dedicated_cpus":0,"memory_mb":512}],"page_size_kb":null,"policy":"dedicated"},'
        '"query":["=","$free_ram_mb",2.5],"resources":{"VCPU":1},"weights":{"spread":2.0},"zones":["a","b"]}'
    )
    assert one.shape() == "{" + asked
    assert one.digest() == blake2b(('{"consumer":"web",' + asked).encode(), digest_size=16).hexdigest()


def test_a_report_names_external_usage_only_of_what_it_has() -> None:
    """Otherwise a misspelt resource class would hide the usage."""
    with pytest.raises(InvalidRequest, match="external has 'MEMORY_MB'"):
        HostReport("h1", {"VCPU": Inventory(1)}, external={"MEMORY_MB": 1})


def test_a_label_may_have_the_flags_of_a_cpu_and_all_labels_together_have_an_end() -> None:
    flags = ",".join(f"flag{number}" for number in range(200))
    assert HostReport("h1", {}, labels={"cpu.flags": flags}).labels["cpu.flags"] == flags
    with pytest.raises(InvalidRequest, match="use up to 2047 printable ASCII characters"):
        HostReport("h1", {}, labels={"cpu.flags": "x" * 2048})
    with pytest.raises(InvalidRequest, match="16385 characters together: use up to 16384"):
        HostReport("h1", {}, labels={f"l{number}": "x" * 2000 for number in range(8)} | {"last": "x" * 385})


def test_tokens_order_by_epoch_and_then_seq() -> None:
    """They compare as numbers and not as text: seq 10 comes after seq 9."""
    tokens = ["9-ff.10", "9-ff.9", "10-aa.1"]
    assert sorted(tokens, key=Token.parse) == ["9-ff.9", "9-ff.10", "10-aa.1"]
    assert str(Token.parse("1790000000000-9f3a12cd.4711")) == "1790000000000-9f3a12cd.4711"


@pytest.mark.parametrize(
    "text", ["", "x", "1-a", "1-a.", "-a.1", "1-.1", "1-a.1 ", "\N{ARABIC-INDIC DIGIT ONE}-a.1", "1-a.1" + "0" * 60]
)
def test_what_is_no_token_is_refused(text: str) -> None:
    """An invalid token must never reach a script."""
    with pytest.raises(InvalidRequest):
        Token.parse(text)
