"""What a host may say that it holds: everything that a journal can contain, and nothing else."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from redsched.errors import InvalidRequest
from redsched.model import MAX_HOST_CLAIMS, ClaimStatus
from redsched.model.validation import MAX_AMOUNT
from redsched.store.codec.attested import check_attested
from redsched.store.codec.claim_fields import FIELDS
from redsched.store.codec.replies import EndedPlacement, JournaledClaim

EPOCH = "1790000000000-9f3a12cd"
T1, T2, T3 = (f"{EPOCH}.{number}" for number in (1, 2, 3))
FULL = {
    "actor": "oidc:ann",
    "request_id": "5f3a-1.2",
    "project": "web",
    "consumer": "shop",
    "digest": "d" * 32,
    "owner": "oidc:a b",
    "group": "web",
    "gang": "a",
    "gang_members": "db=a,b app=c",
    "gang_on_exit": "replace",
    "claimed_at_ms": "1790000000000",
    "max_attempts": "3",
    "max_runtime_s": "60",
    "runtime_deadline_ms": "1790000060000",
    "alternates": "2",
    "restarts": "1",
    "on_exit": "replace",
    "log": "h1:/var/log/jobs of ann/log",
    "end_reason": "moved",
    "work_ended_at_ms": "1790000000000",
    "expires_at_ms": "1790000000000",
    "resized_from": T1,
    "amount.VCPU": "2",
    "amount.gpu0/CUSTOM_GPU_MILLI": "250",
    "amount.pool:licences/CUSTOM_SEAT": "1",
    "resizing_to.VCPU": "4",
    "counted.zone": "az1",
    "counted.label:rack": "r4 upper",
}
HELD = JournaledClaim("a", T3, T2, T1, ClaimStatus.ACTIVE, FULL)
ENDED = EndedPlacement("b", T1, T1, "released")


def test_all_that_a_journal_can_contain_passes() -> None:
    check_attested([HELD], [replace(ENDED, token=T1)], EPOCH)
    check_attested([JournaledClaim("local", "")], [])
    missing = {one.name for one in FIELDS if one.journaled} - {name.partition(".")[0] for name in FULL}
    assert not missing, "give each a value in FULL"


@pytest.mark.parametrize(
    "record",
    [
        {"closed": T3},
        {"call_id": "x"},
        {"host": "h2"},
        {"state": "active"},
        {"token": T3},
        {"placement.1-a.1.state": "active"},
        {"actor": "a\nb"},
        {"actor": "a" * 256},
        {"request_id": "a b"},
        {"owner": "alice\n"},
        {"owner": "@me"},
        {"digest": "local", "owner": "alice"},
        {"project": "web\r\n"},
        {"project": "{x}"},
        {"digest": "XYZ"},
        {"digest": "d" * 65},
        {"gang_members": "db="},
        {"gang_members": "db=a}b"},
        {"gang_members": f"db={'a' * 63}}}"},  # a pattern that can read it in many ways would take for ever
        {"claimed_at_ms": "-1"},
        {"claimed_at_ms": "1e9"},
        {"max_attempts": "101"},
        {"max_runtime_s": "0"},
        {"max_runtime_s": "2592001"},
        {"runtime_deadline_ms": "soon"},
        {"on_exit": "explode"},
        {"gang_on_exit": "explode"},
        {"log": "h1"},
        {"log": "h1:log"},
        {"log": "/log"},
        {"log": "h1:/a\nb"},
        {"end_reason": ""},
        {"resized_from": "x"},
        {"amount.VCPU": str(2**53)},
        {"amount.VCPU": "x"},
        {"amount.NOTHING": "1"},
        {"amount": "1"},
        {"counted.zone": "a\0b"},
        {"counted.label:rack": "a\nb"},
        {"counted.moon": "x"},
        {f"counted.label:l{number}": "x" for number in range(12)},
        {"gang_members": "db=" + "a," * 20_000 + "a"},
    ],
    ids=lambda record: next(iter(record))[:30],
)
def test_no_other_field_and_no_other_value_passes(record: Mapping[str, str]) -> None:
    with pytest.raises(InvalidRequest, match=r"^claim a: "):
        check_attested([replace(HELD, record=record)], [])


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (replace(HELD, token="x"), "malformed"),
        (replace(HELD, placed=T3, token=T2), "in this order"),
        (replace(HELD, root=T3), "in this order"),
        (replace(HELD, token="1790000000001-9f3a12cd.1"), "later epoch"),
        (replace(HELD, id="a/b"), "not a name"),
    ],
)
def test_tokens_are_in_order_and_of_no_later_epoch(held: JournaledClaim, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        check_attested([held], [], EPOCH)


def test_each_placement_is_reported_once() -> None:
    with pytest.raises(InvalidRequest, match="2 times"):
        check_attested([HELD, replace(HELD, id="b")], [])
    with pytest.raises(InvalidRequest, match="2 times"):
        check_attested([HELD], [EndedPlacement("a", T2)])


def test_sums_that_lua_cannot_count_are_refused() -> None:
    half = {"amount.VCPU": str(MAX_AMOUNT // 2 + 1)}
    one, other = replace(HELD, record=half), replace(HELD, placed=T1, record=half)
    check_attested([one], [])
    with pytest.raises(InvalidRequest, match="above the largest amount"):
        check_attested([one, other], [])


def test_an_end_has_a_known_reason_and_the_number_of_claims_a_limit() -> None:
    with pytest.raises(InvalidRequest):
        check_attested([], [replace(ENDED, end_reason="bored")])
    with pytest.raises(InvalidRequest, match="at most"):
        check_attested([HELD] * (MAX_HOST_CLAIMS + 1), [])
