"""The Lua files: nothing in them is unused, and the fields that they write to claims are in the table of fields."""

import re
from collections import Counter

import pytest

from redsched.store.client.scripts import functions, includes, load_all, scripts
from redsched.store.codec.claim_fields import CLAIM, FIELDS, PLACEMENT

SCRIPTS = {f"{name}.lua": text for name, text in scripts().items()}
INCLUDES = {f"{name}.lua": text for name, text in includes().items()}
FUNCTIONS = {f"{name}.lua": text for name, text in functions().items()}
"""The functions for redis-cli. `claim` is also the name of a script."""
SOURCES = (*SCRIPTS.values(), *FUNCTIONS.values(), *INCLUDES.values())

INCLUDE = re.compile(r"^ *-- include: (\w+)$", re.MULTILINE)
GENERATED = {"claim_fields.lua"}
IN_MEMORY = {"op", "notify", "reason", "unreadable", "clock_shift_ms"}
"""What scripts note about a placement while they run, besides its fields."""
FAMILIES = {"amounts": "amount", "resizing_to": "resizing_to", "counted": "counted"}
"""The tables of a placement, and the prefix of the fields that they are written as."""


def code(source: str) -> str:
    """Return a file without its comments."""
    return re.sub(r"--.*", "", source)


ALL_CODE = code("\n".join(SOURCES))


def defined(source: str) -> set[str]:
    """Return the functions and constants that an include defines."""
    names = set(re.findall(r"^local function (\w+)", source, re.MULTILINE))
    return names | {
        name for line in re.findall(r"^local ([\w, ]+) =", source, re.MULTILINE) for name in line.split(", ")
    }


@pytest.mark.parametrize("name", sorted(INCLUDES))
def test_whatever_an_include_defines_is_used(name: str) -> None:
    unused = {one for one in defined(INCLUDES[name]) if len(re.findall(rf"\b{one}\b", ALL_CODE)) < 2}
    assert not unused


def test_each_include_is_part_of_a_script() -> None:
    included = [name for source in SOURCES for name in INCLUDE.findall(source)]
    assert {f"{name}.lua" for name in included} - GENERATED == INCLUDES.keys()


IN_TWO_FUNCTIONS = {
    "claim": {"quota_write", "read_hash", "object_counts", "in_chunks", "keep_text"},
    "replace": {"quota_write"},
}
"""Includes that two functions of a script need. At the top of the script, every call would pay for them."""


@pytest.mark.parametrize("name", sorted(scripts()))
def test_a_composed_script_has_an_include_once(name: str) -> None:
    times = Counter(re.findall(r"^local function (\w+)", load_all()[name].text, re.MULTILINE))
    twice = {one for one, source in includes().items() if any(times[function] > 1 for function in defined(source))}
    assert twice == IN_TWO_FUNCTIONS.get(name, set())


def of(kind: str) -> set[str]:
    return {one.name for one in FIELDS if one.of == kind}


def test_each_field_of_a_claim_that_a_script_sets_is_in_the_table() -> None:
    """A field that is missing there would be kept after the claim has ended, and never be documented."""
    written = set(re.findall(r"\bclaim\.fields\.(\w+)", ALL_CODE))
    assert written
    assert written <= of(CLAIM)


def test_each_field_of_a_placement_that_a_script_sets_is_in_the_table() -> None:
    """A field that is missing there would never be written."""
    written = set(re.findall(r"\b(?:placement|held|target)\.(\w+)(?:, \w+\.\w+)* =[^=]", ALL_CODE))
    assert written - IN_MEMORY - FAMILIES.keys() <= of(PLACEMENT)
    assert set(FAMILIES.values()) <= of(PLACEMENT)


def test_claim_lua_writes_new_claims_with_fields_of_the_table() -> None:
    source = "".join(INCLUDES[f"claim_{part}.lua"] for part in ("arguments", "new", "options", "objects"))
    (always,) = re.findall(r"'HSET', member\.key, (.*?), unpack\(with_origin\(", source, re.DOTALL)
    (options,) = re.findall(r"pairs\(\{(.*?)\}\)", source, re.DOTALL)
    first = re.findall(r"'(\w+)'", always)
    later = re.findall(r"(\w+) =", options) + re.findall(r"claim\[#claim \+ 2\] = '(\w+)',", source)
    later += re.findall(r"(?:stored\[#carried \+ 2 \* i\] =|put\() ?'(\w+)\.' \.\.", source) + re.findall(
        r"put\('(\w+)',", source
    )
    assert {"host", "digest", "amount", "max_runtime_s", "alternates", "group", "counted"} <= {*first, *later}
    assert {*first, *later} <= of(CLAIM) | of(PLACEMENT) | {"claimed"}


def test_no_two_fields_have_one_name() -> None:
    names = [one.name for one in FIELDS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("sources", [SCRIPTS, FUNCTIONS, INCLUDES], ids=["scripts", "functions", "includes"])
def test_lines_are_no_longer_than_luacheck_allows(sources: dict[str, str]) -> None:
    """luacheck is not installed everywhere."""
    long = [(name, line) for name, text in sources.items() for line in text.splitlines() if len(line) > 120]
    assert long == []
