"""Metadata of aggregates: values of keys with a meaning are checked when they are declared."""

import pytest

from redsched.errors import InvalidRequest
from redsched.model import Aggregate


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trait:HW_CPU_X86_AVX2", "required"),
        ("trait:CUSTOM_X", "forbidden"),
        ("label:rack.row", "required"),
        ("max_claims_per_host", "0"),
        ("max_instances_per_host", "50"),
        ("filter_tenant_id", "web, db"),
        ("property-required:image", "a,b"),
        ("anything", "goes"),
    ],
)
def test_metadata_that_mean_something_are_taken(key: str, value: str) -> None:
    assert Aggregate("a", {key: value}).metadata == {key: value}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("trait:HW_CPU_X86_AVX2", "yes", "metadata 'trait:HW_CPU_X86_AVX2' must be required or forbidden, not 'yes'"),
        ("trait:HW_CPU_AVX", "required", "unknown trait 'HW_CPU_AVX'"),
        ("label:a:b", "required", "label 'a:b' is not a name"),
        ("label:rack", "Required", "must be required or forbidden, not 'Required'"),
        ("max_claims_per_host", "many", "metadata 'max_claims_per_host' must be a whole number (0: no limit)"),
        ("max_io_ops_per_host", "-1", "metadata 'max_io_ops_per_host' must be a whole number"),
        ("max_starting_per_host", "1.5", "must be a whole number"),
    ],
)
def test_metadata_that_would_mean_nothing_are_refused(key: str, value: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Aggregate("a", {key: value})
    assert message in raised.value.detail
