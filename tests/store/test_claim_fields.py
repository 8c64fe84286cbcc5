"""The table of a claim's fields: what requests pass on to claims, and what is read from hashes again."""

from dataclasses import fields

import pytest

from redsched.model import Claim, GangOnExit, OnExit, Request
from redsched.model.request import _OF_THE_ANSWER
from redsched.store.client.scripts import load_all
from redsched.store.codec.claim_fields import FIELDS, attributes_in, carried, carried_by


def test_a_claim_carries_what_its_request_says_beyond_what_absent_fields_mean() -> None:
    plain = Request({"VCPU": 1}, max_attempts=1)
    assert carried_by(plain, gang_members={}) == {"consumer": ""}
    asked = Request({"VCPU": 1}, consumer="job", on_exit=OnExit.REPLACE)
    assert carried_by(asked, gang_members={}) == {"consumer": "job", "on_exit": "replace", "max_attempts": "3"}


def test_what_depends_on_the_call_is_not_the_requests() -> None:
    asked = Request({"VCPU": 1}, count=2, gang_on_exit=GangOnExit.RELEASE)
    of_call = {"gang_members": {"places": ("a", "b")}, "gang_on_exit": GangOnExit.KEEP}
    found = carried_by(asked, **of_call)
    assert (found["gang_members"], "gang_on_exit" in found) == ("places=a,b", False)


def test_what_is_carried_is_read_again() -> None:
    given = {
        "consumer": "job",
        "on_exit": OnExit.KEEP,
        "max_attempts": 7,
        "gang_members": {"db": ("a", "b"), "app": ("c",)},
        "gang_on_exit": GangOnExit.REPLACE,
    }
    assert attributes_in(carried(**given)) == given


def test_each_attribute_that_is_read_is_one_of_a_claim() -> None:
    every = {one.name: "1-a.1" for one in FIELDS if one.kind and one.kind.read is str}
    assert set(attributes_in(every)) <= {one.name for one in fields(Claim)}


@pytest.mark.parametrize("script", ["claim", "replace"])
def test_what_is_carried_is_no_argument_of_its_own(script: str) -> None:
    """The script passes it on unseen. What it reads of the call, such as `max_runtime_s`, has a name there."""
    assert not {one.name for one in FIELDS if one.carried} & set(load_all()[script].arguments.names)


def test_what_is_carried_is_part_of_the_digest() -> None:
    """Requests of one digest may be claimed by one call, with what the first of them carries."""
    assert not {one.name for one in FIELDS if one.carried} & _OF_THE_ANSWER
