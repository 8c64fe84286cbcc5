"""The header of a script is its calling contract: what KEYS and ARGV hold, by name."""

import re
from importlib.resources import files

import pytest

from redsched.store.scripts import Contract, load_all

SOURCES = {
    entry.name[:-4]: entry.read_text()
    for entry in sorted((files("redsched") / "lua").iterdir(), key=lambda one: one.name)
    if entry.name.endswith(".lua")
}
UNNAMED: set[str] = set()
"""Scripts whose headers number their KEYS and ARGV still."""
NUMBERED = re.compile(r"\b(KEYS|ARGV)\[(\d+)\]")


def is_named(name: str) -> bool:
    """Whether a header has a line that names the keys."""
    return re.search(r"^-- KEYS( [a-z_]+)*( \.\.\.)?$", SOURCES[name], re.MULTILINE) is not None


@pytest.mark.parametrize("name", SOURCES)
def test_a_header_names_keys_and_arguments(name: str) -> None:
    """All but those of UNNAMED, a list that must shrink: one that has been converted may not stay there."""
    assert is_named(name) is (name not in UNNAMED)


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_what_a_header_names_is_not_numbered_in_the_body(name: str) -> None:
    """`KEY.host` can be read, and stays right when another key comes before it."""
    script = load_all()[name]
    named = {"KEYS": len(script.keys.names), "ARGV": len(script.arguments.names)}
    assert [one[0] for one in NUMBERED.finditer(SOURCES[name]) if int(one[2]) <= named[one[1]]] == []


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_what_a_body_uses_by_name_the_header_names(name: str) -> None:
    """A name that the header does not have would be nil."""
    script = load_all()[name]
    used = {(one[1], one[2]) for one in re.finditer(r"\b(KEY|ARG)\.([a-z_]+)", SOURCES[name])}
    known = {("KEY", one) for one in script.keys.names} | {("ARG", one) for one in script.arguments.names}
    assert used <= known


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_the_fence_finds_its_keys_first(name: str) -> None:
    """include/fence.lua and what builds on it take meta, changes and hosts by their place."""
    fenced = "local function fence(deadlines)" in load_all()[name].text
    assert (load_all()[name].keys.names[:3] == ("meta", "changes", "hosts")) is fenced


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_a_script_that_is_passed_the_deadlines_tells_a_silence_from_a_jump_of_time(name: str) -> None:
    """It costs nothing until the time has jumped. Without it a claim that ends a silence starts an epoch."""
    text = load_all()[name].text
    sees_deadlines = "deadlines" in load_all()[name].keys.names
    assert ("fence(KEY.deadlines)" in text) is sees_deadlines
    assert "fence()" not in text or not sees_deadlines


def test_a_call_with_another_number_of_values_is_refused() -> None:
    """An open list takes more, and never fewer than it names. A header that names keys alone takes no arguments."""
    exact, open_list = Contract(("meta", "host"), is_open=False), Contract(("meta",), is_open=True)
    assert [exact.admits(count) for count in (1, 2, 3)] == [False, True, False]
    assert [open_list.admits(count) for count in (0, 1, 5)] == [False, True, True]
    load_all()["tick"].check(4, 0)
    with pytest.raises(TypeError, match=r"tick\.lua: 3 keys for .*, 1 arguments for .*"):
        load_all()["tick"].check(3, 1)
