"""Units in input: their meaning; no value is guessed or rounded."""

from typing import Any

import pytest
from pydantic import ValidationError

from redsched.errors import InvalidRequest
from redsched.model.units import parse_amount, parse_seconds, without_units
from redsched.settings import load


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("MEMORY_MB", "4096", 4096),
        ("MEMORY_MB", "4Gi", 4096),
        ("MEMORY_MB", "4 Gi", 4096),
        ("MEMORY_MB", "1.5Gi", 1536),
        ("MEMORY_MB", "2048Ki", 2),
        ("MEMORY_MB", "512Mi", 512),
        ("numa0/MEMORY_MB", "1Ti", 1_048_576),
        ("memory_mb", "1Gi", 1024),
        ("page_size_kb", "2Mi", 2048),
        ("DISK_GB", "2Ti", 2048),
        ("CUSTOM_SCRATCH_GB", "1Pi", 1_048_576),
        ("NET_BW_EGR_KILOBIT_PER_SEC", "10G", 10_000_000),
        ("NET_BW_IGR_KILOBIT_PER_SEC", "1.5M", 1500),
        ("NET_PACKET_RATE_KILOPACKET_PER_SEC", "2M", 2000),
        ("VCPU", "-1", -1),
        ("claims", "50", 50),
    ],
)
def test_an_amount_is_what_its_class_counts(name: str, text: str, amount: int) -> None:
    assert parse_amount(name, text) == amount


@pytest.mark.parametrize(
    ("name", "text", "refusal"),
    [
        ("MEMORY_MB", "4G", "ambiguous, 1000 or 1024: use Ki, Mi, Gi, Ti, Pi, or a plain number of MiB"),
        ("MEMORY_MB", "4096MB", "ambiguous"),
        ("DISK_GB", "5k", "ambiguous"),
        ("MEMORY_MB", "4Zi", "unknown unit 'Zi'"),
        ("MEMORY_MB", "4GI", "unknown unit 'GI'"),
        ("MEMORY_MB", "1Ki", "is 0.000976562 MiB: give a whole number"),
        ("MEMORY_MB", "1.0001Gi", "is 1024.1 MiB"),
        ("DISK_GB", "512Mi", "is 0.5 GiB"),
        ("NET_BW_EGR_KILOBIT_PER_SEC", "1Gi", "unknown unit 'Gi': use k, M, G, T"),
        ("VCPU", "2k", "takes no unit"),
        ("CUSTOM_GPU_MILLI", "500m", "takes no unit"),
        ("MEMORY_MB", "1.5", "must be a whole number"),
        ("MEMORY_MB", "", "must be a whole number"),
        ("MEMORY_MB", "Gi", "must be a whole number"),
        ("MEMORY_MB", "-4Gi", "must be a whole number"),
        ("MEMORY_MB", "1e3Mi", "must be a whole number"),
        ("MEMORY_MB", "\uff14Gi", "must be a whole number"),
    ],
)
def test_nothing_is_guessed_or_rounded(name: str, text: str, refusal: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_amount(name, text)
    assert refusal in refused.value.detail
    assert name in refused.value.detail


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("90m", 5400), ("5h", 18_000), ("2d", 172_800), ("1h30m", 5400), ("1.5h", 5400)],
)
def test_a_time_is_in_seconds(text: str, seconds: int) -> None:
    assert parse_seconds("lease_s", text) == seconds


@pytest.mark.parametrize("text", ["", "h", "5H", "5 h", "0.5s", "5w", "5M", "1h-5m", "h5", "5ms", "1.2.3h"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="lease_s"):
        parse_seconds("lease_s", text)


def test_a_body_has_units_where_amounts_and_times_stand() -> None:
    body: dict[str, Any] = {
        "resources": {"VCPU": 2, "MEMORY_MB": "4Gi"},
        "groups": [{"name": "a", "resources": {"DISK_GB": "1Ti"}}],
        "numa": {"cells": [{"cpus": 4, "memory_mb": "8Gi"}], "page_size_kb": "1Gi"},
        "inventories": {"MEMORY_MB": {"total": "256Gi", "reserved": "512Mi", "allocation_ratio": 1.5}},
        "pools": {"inventories": {"inventories": {"MEMORY_MB": {"total": "1Gi"}}}},
        "lease_s": "5h",
        "queue_timeout_s": 5,
    }
    assert without_units(body) == {
        "resources": {"VCPU": 2, "MEMORY_MB": 4096},
        "groups": [{"name": "a", "resources": {"DISK_GB": 1024}}],
        "numa": {"cells": [{"cpus": 4, "memory_mb": 8192}], "page_size_kb": 1_048_576},
        "inventories": {"MEMORY_MB": {"total": 262_144, "reserved": 512, "allocation_ratio": 1.5}},
        "pools": {"inventories": {"inventories": {"MEMORY_MB": {"total": 1024}}}},
        "lease_s": 18_000,
        "queue_timeout_s": 5,
    }


def test_texts_of_ones_own_stay_as_they_are() -> None:
    """A label may have the name of a resource class; quoted numbers are left for the fields to reject."""
    body = {
        "labels": {"lease_s": "5h", "MEMORY_MB": "4Gi"},
        "metadata": {"resources": "4Gi"},
        "query": ["=", "$free.MEMORY_MB", "4Gi"],
        "project": "5h",
        "resources": {"MEMORY_MB": "4096", "VCPU": None},
        "hints": ["4Gi"],
    }
    assert without_units(body) == body


def test_settings_take_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSCHED_REPORT_S", "5m")
    monkeypatch.setenv("REDSCHED_LEASE_S", "1m")
    monkeypatch.setenv("REDSCHED_RESERVED_MEMORY_MB", "2Gi")
    monkeypatch.setenv("REDSCHED_POLL_S", "0.05")
    found = load()
    assert (found.report_s, found.lease_s, found.reserved_memory_mb, found.poll_s) == (300, 60, 2048, 0.05)
    monkeypatch.setenv("REDSCHED_RESERVED_DISK_GB", "5G")
    with pytest.raises(ValidationError, match="ambiguous"):
        load()
