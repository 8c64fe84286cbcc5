"""What `redsched acl` is generated from is complete: every command that a script calls, every kind of key."""

import inspect
import re

import pytest

from redsched.store.access.key_kinds import BETWEEN_CELLS, IN_ORDER, OF_CELL
from redsched.store.access.roles import StoreRole, work_of
from redsched.store.access.script_commands import commands_in, commands_of
from redsched.store.access.script_keys import KINDS_OF_FURTHER_KEYS, kinds_of
from redsched.store.client.function_library import library
from redsched.store.client.scripts import functions, includes, load_all, scripts
from redsched.store.codec.keys import Keys
from redsched.store.embedded.server import PrivateServer
from tests.support.guard import composed
from tests.support.plain_client import plain_client

SOURCES = scripts() | includes() | {f"rs_{name}": text for name, text in functions().items()}
CALL = re.compile(r"redis\.p?call\b|\b(?:in_chunks|remove_members)\(")
NAMES_IT = re.compile(r"(?:redis\.p?call|in_chunks|remove_members)\('[A-Z]+'")
PASSES_ON = {
    "in_chunks": {"redis.call(command, key", "in_chunks(command, key"},
    "remove_members": {"redis.call(LOOK_UP[command], key", "in_chunks(command, key", "remove_members(command, key"},
}
"""The calls that name no command: those of two functions that are given it, and their own definitions."""
SEVERAL = {"shared_object", "text", "of_host", "object_keys", "head", "due"}
"""Members of `Keys` that return keys of several kinds."""


def code(source: str) -> str:
    return re.sub(r"--.*", "", source)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_call_names_its_command_where_it_can_be_found(name: str) -> None:
    """A command in a variable, or a function under another name, would be missing from the permissions."""
    source, other = code(SOURCES[name]), set[str]()
    for found in CALL.finditer(source):
        rest = source[found.start() :]
        if not NAMES_IT.match(rest):
            other.add(re.match(r"[^,]*, *\w+|.*", rest)[0])  # type: ignore[index]  # it always matches
    assert other == PASSES_ON.get(name, set())


def test_each_command_in_the_text_of_a_script_is_found(server: PrivateServer) -> None:
    """Every quoted word that is the name of a command of this server, wherever it stands."""
    with plain_client(server.url) as operator:
        known = {name.upper() for name in operator.ask(("COMMAND", "LIST"))[0]}
    texts = {name: composed(name).text for name in scripts()} | {"functions": library().text}
    quoted = {name: known.intersection(re.findall(r"'([A-Z]+)'", code(text))) for name, text in texts.items()}
    assert {name: commands_in(text) for name, text in texts.items()} == quoted


def test_the_probe_calls_every_command_that_any_script_calls() -> None:
    assert frozenset[str]().union(*map(commands_of, load_all())) == commands_of("probe")


def test_each_kind_of_key_is_in_the_list_of_kinds() -> None:
    members = {*Keys.__slots__, *(name for name, _ in inspect.getmembers(Keys, inspect.isfunction))}
    kinds = {name for name in members if not name.startswith("_")} - SEVERAL
    assert kinds == OF_CELL | BETWEEN_CELLS
    assert len(IN_ORDER) == len(OF_CELL)


@pytest.mark.parametrize("name", sorted(scripts()))
def test_the_keys_of_each_script_are_of_known_kinds(name: str) -> None:
    """The guard of all suites compares the further keys of every call with this table."""
    assert kinds_of(name) <= OF_CELL | BETWEEN_CELLS
    assert load_all()[name].keys.is_open is (name in KINDS_OF_FURTHER_KEYS)


def test_a_reader_runs_no_script_that_writes() -> None:
    assert work_of(StoreRole.READER).written == frozenset()
    assert work_of(StoreRole.READER).writing_scripts == frozenset()
    assert work_of(StoreRole.SCHEDULER).scripts == frozenset(load_all())
