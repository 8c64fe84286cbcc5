"""The header of a script is its calling contract: it names what KEYS and ARGV hold."""

import re

import pytest

import redsched.store.client.scripts as scripts_module
from redsched.store.client.scripts import Contract, includes, load_all, scripts
from tests.support.guard import composed as compose_unguarded

SOURCES = dict(sorted(scripts().items()))
UNNAMED: set[str] = set()
"""Scripts whose headers still number their KEYS and ARGV."""
NUMBERED = re.compile(r"\b(KEYS|ARGV)\[(\d+)\]")


def is_named(name: str) -> bool:
    """Return whether a header has a line that names the keys."""
    return re.search(r"^-- KEYS( [a-z_]+)*( \.\.\.)?$", SOURCES[name], re.MULTILINE) is not None


@pytest.mark.parametrize("name", SOURCES)
def test_a_header_names_keys_and_arguments(name: str) -> None:
    """All but those of UNNAMED, a list that must shrink: a script that has been converted may not stay there."""
    assert is_named(name) is (name not in UNNAMED)


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_what_a_header_names_is_not_numbered_in_the_body(name: str) -> None:
    """`KEY.host` is readable, and stays right when another key is inserted before it."""
    script = load_all()[name]
    named = {"KEYS": len(script.keys.names), "ARGV": len(script.arguments.names)}
    assert [one[0] for one in NUMBERED.finditer(SOURCES[name]) if int(one[2]) <= named[one[1]]] == []


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_what_a_body_uses_by_name_the_header_names(name: str) -> None:
    """A name that the header lacks would be nil."""
    script = load_all()[name]
    used = {(one[1], one[2]) for one in re.finditer(r"\b(KEY|ARG)\.([a-z_]+)", SOURCES[name])}
    known = {("KEY", one) for one in script.keys.names} | {("ARG", one) for one in script.arguments.names}
    assert used <= known


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_the_fence_finds_its_keys_first(name: str) -> None:
    """include/core/fence.lua, and includes that use it, take meta, changes and hosts by position."""
    fenced = "local function fence(deadlines)" in load_all()[name].text
    assert (load_all()[name].keys.names[:3] == ("meta", "changes", "hosts")) is fenced


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_a_script_that_is_passed_the_deadlines_tells_a_silence_from_a_jump_of_time(name: str) -> None:
    """It costs nothing until the time has jumped. Without it, a claim after a long silence would start an epoch."""
    text, keys = load_all()[name].text, load_all()[name].keys.names
    sees_deadlines = "deadlines" in keys
    assert (sees_deadlines and f"fence(KEYS[{keys.index('deadlines') + 1}])" in text) is sees_deadlines
    assert "fence()" not in text or not sees_deadlines


def test_a_call_with_another_number_of_values_is_refused() -> None:
    """An open list admits more values, but no fewer than it names. A header that names only keys has no arguments."""
    exact, open_list = Contract(("meta", "host"), is_open=False), Contract(("meta",), is_open=True)
    assert [exact.admits(count) for count in (1, 2, 3)] == [False, True, False]
    assert [open_list.admits(count) for count in (0, 1, 5)] == [False, True, True]
    load_all()["tick"].check(4, 0)
    with pytest.raises(TypeError, match=r"tick\.lua: 3 keys for .*, 1 arguments for .*"):
        load_all()["tick"].check(3, 1)


INCLUDES = includes()
LIST_OF_VALUES = re.compile(r"for i = (\d+), #ARGV")
FURTHER_KEY = re.compile(r"KEYS\[(\d+) \+ (\w+)\]")
PASSED = re.compile(r"passed\((\d+)(?: \+ (#?\w+))?\)")


def with_include(name: str, include: str) -> str:
    """Return a script's own code, with that of an include which depends on where the script's lists begin."""
    source = SOURCES[name]
    return source + INCLUDES[include] if f"-- include: {include}\n" in source else source


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - UNNAMED))
def test_lists_begin_behind_the_keys_and_arguments_that_the_header_names(name: str) -> None:
    """Their positions are counted by hand: another named key or argument shifts them."""
    script, source = load_all()[name], with_include(name, "about") + with_include(name, "attest_entries")
    keys, arguments = len(script.keys.names), len(script.arguments.names)
    lists = {int(first) for first in LIST_OF_VALUES.findall(source)}
    assert lists <= {arguments + 1}
    for first, index in FURTHER_KEY.findall(source):
        assert int(first) == keys - (arguments if index == "i" and lists else 0)
    for first, length in PASSED.findall(source):
        assert int(first) == keys + 1 - (arguments if length == "#ARGV" else 0)


UNUSED = {
    "claim": set(),
    "replace": {
        *("digest", "owner", "own_only", "call_id", "most_alternates"),
    },
}
"""The arguments that replace.lua ignores: the claims that it places again have these already."""


@pytest.mark.parametrize("name", ["claim", "replace"])
def test_a_claim_takes_its_arguments_from_where_the_header_has_them(name: str) -> None:
    """Each argument is used, and the lists begin after the last one, those of keys after the last key."""
    source, script = INCLUDES["claim_arguments"] + INCLUDES["claim_known"], load_all()[name]
    names, keys = script.arguments.names, len(script.keys.names)
    used = {int(number) for number in re.findall(r"\bARGV\[(\d+)\]", script.text)}
    assert set(names) - {names[number - 1] for number in used} == UNUSED[name]
    assert re.findall(r"local fixed = (\d+)", source) == [str(len(names))]
    assert set(re.findall(r"(?:local first = |KEYS\[|KEYS, \d+, )(\d+) \+ ", source)) == {str(keys)}
    assert re.findall(r"KEYS, (\d+), ", source) == [str(keys + 1)]


def composed(monkeypatch: pytest.MonkeyPatch, sources: dict[str, str], parts: dict[str, str]) -> dict[str, str]:
    """Return the composed texts of scripts with these includes."""
    monkeypatch.setattr(scripts_module, "scripts", lambda: sources)
    monkeypatch.setattr(scripts_module, "includes", lambda: parts)
    return {name: compose_unguarded(name).text for name in sources}


def test_an_include_comes_once_after_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever file includes it."""
    parts = {"a": "-- include: b\nA\n", "b": "B\n"}
    assert composed(monkeypatch, {"x": "#!lua\n-- include: a\n-- include: b\nX\n"}, parts) == {"x": "#!lua\nB\nA\nX\n"}


def test_an_include_of_a_function_is_its_own_unless_the_script_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`b` comes before the function, which includes only `c` and `d` itself."""
    parts = {"b": "B\n", "c": "C\n", "d": "-- include: c\nD\n"}
    source = "#!lua\n-- include: b\nfunction f()\n  -- include: b\n  -- include: c\n  -- include: d\nend\n"
    assert composed(monkeypatch, {"x": source}, parts) == {"x": "#!lua\nB\nfunction f()\nC\nD\nend\n"}


def test_what_a_function_and_its_script_need_stands_above_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the script includes it after the function's file, and the function through another include."""
    parts = {
        "a": "function f()\n  -- include: c\n  -- include: d\nend\n",
        "b": "B\n",
        "c": "-- include: b\nC\n",
        "d": "D\n",
    }
    for source in ("#!lua\n-- include: a\n-- include: b\nX\n", "#!lua\n-- include: a\nX\n-- include: b\n"):
        assert composed(monkeypatch, {"x": source}, parts) == {"x": "#!lua\nB\nfunction f()\nC\nD\nend\nX\n"}


@pytest.mark.parametrize("line", ["-- include: a\n", "function f()\n  -- include: a\nend\n"])
def test_an_include_that_leads_back_to_itself_is_refused(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Also in a function: otherwise the function would lack what is defined only after it."""
    parts = {"a": "function g()\n  -- include: b\nend\n", "b": line}
    with pytest.raises(LookupError, match=r"include a leads back to itself: x\.lua > a > b > a"):
        composed(monkeypatch, {"x": "#!lua\n-- include: a\n"}, parts)


def test_names_become_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """KEY and ARG cost a script nothing. A name that the header lacks is refused when the scripts are loaded."""
    source = "#!lua\n-- KEYS meta host\n-- ARGV id\nreturn {KEY.host, ARG.id}\n"
    assert composed(monkeypatch, {"x": source}, {})["x"].endswith("return {KEYS[2], ARGV[1]}\n")
    with pytest.raises(LookupError, match=r"x\.lua uses KEY\.claims, which its header does not name: add it there"):
        composed(monkeypatch, {"x": source.replace("KEY.host", "KEY.claims")}, {})
