"""A guard around the scripts that tests run: none may touch a key that it may have removed.

In a hash slot that is being moved to another server key by key, the source rejects every command on a key that it does
not have, because the key may be at the target by now. It checks the declared keys once before a script, and again at
each command: a script that removes a key and touches it afterwards stops there, with its earlier writes done. In a
slot that does not move, nothing happens. So every script of the test suite runs behind `guard.lua`, which raises an
error in such a case. A second check compares the keys of each call with the names in the script's header, and those
that follow with `script_keys.KINDS_OF_FURTHER_KEYS`.

`install` patches this process, and processes that import `tests` and inherit `GUARDED`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha1
from pathlib import Path

from redsched.origin import Origin
from redsched.store.access import script_keys
from redsched.store.client import call, script_client, scripts
from redsched.store.codec.wire import Reply

GUARDED = "REDSCHEDTEST_GUARDED"
"""Environment variable: set for the processes that a test starts."""
UNGUARDED: frozenset[str] = frozenset()
"""Scripts that still break the rule: none."""

MARK = "GUARD "
OF_ALL_KINDS = {
    "object": r"(aggregate|server-group|pool|quota):.+",
    "names": "(aggregate|server-group|pool|quota)s",
    "text": "(request|alternates):.+",
}
"""The suffixes of keys that headers name neither by their kind nor by `<something>_<kind>`."""
OUTSIDE = {"binding": r"rs:\{(claim|server-group):.+\}", "home": r"rs:\{host:.+\}"}
"""Keys that belong to no cell."""

composed = scripts.compose
"""The composer of the package."""

found: list[str] = []
"""The violations in this process, including those whose error the caller suppressed."""


def install() -> None:
    """Guard all scripts that this process runs from now on."""
    if hasattr(script_client.ScriptClient.run, "guarded"):
        return
    scripts.compose = _composing(composed)  # type: ignore[assignment]  # mypy wants its parameter's name
    scripts.load_all.cache_clear()
    _watch_errors()
    _watch_keys()


@contextmanager
def lifted() -> Iterator[None]:
    """Run scripts without the guard, to see the server's own reply."""
    guarded, scripts.compose = scripts.compose, composed
    scripts.load_all.cache_clear()
    try:
        yield
    finally:
        scripts.compose = guarded
        scripts.load_all.cache_clear()


def _composing(compose: Callable[[str], scripts.Script]) -> Callable[[str], scripts.Script]:
    def guarded(name: str) -> scripts.Script:
        return compose(name) if name in UNGUARDED else guard(compose(name))

    return guarded


def guard(script: scripts.Script) -> scripts.Script:
    """Return the script behind the guard. Its first line names the engine, and stays the first."""
    first, _, rest = script.text.partition("\n")
    text = f"{first}\n{_guard()}{rest}"
    return replace(script, text=text, sha=sha1(text.encode(), usedforsecurity=False).hexdigest())


@cache
def _guard() -> str:
    return Path(__file__).with_name("guard.lua").read_text()


def _watch_errors() -> None:
    fail = call.Call.fail

    def watched(self: call.Call, error: BaseException) -> None:
        if MARK in str(error):
            found.append(f"{self.script.name}: {error}")
        fail(self, error)

    call.Call.fail = watched  # type: ignore[method-assign]


def _watch_keys() -> None:
    run = script_client.ScriptClient.run

    async def watched(
        self: script_client.ScriptClient,
        name: str,
        keys: Sequence[str],
        arguments: Sequence[str | int],
        durable: bool = False,
        origins: Sequence[Origin] = (),
    ) -> Reply:
        names = scripts.load_all()[name].keys.names
        wrong = [*wrong_keys(names, keys), *wrong_further_keys(name, keys[len(names) :])]
        if wrong:
            found.append(f"{name}: {wrong}")
            raise TypeError(f"{name}.lua: {wrong}")
        return await run(self, name, keys, arguments, durable, origins)

    watched.guarded = True  # type: ignore[attr-defined]
    script_client.ScriptClient.run = watched  # type: ignore[method-assign]


def wrong_keys(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return the keys of a call whose kind differs from the names in the header."""
    return [f"{name}: {key}" for name, key in zip(names, keys, strict=False) if not re.fullmatch(_form(name), key)]


def wrong_further_keys(script: str, keys: Sequence[str]) -> list[str]:
    """Return the keys behind those of the header whose kind `redsched acl` does not know of."""
    known = script_keys.KINDS_OF_FURTHER_KEYS.get(script, frozenset())
    return [f"not in script_keys.KINDS_OF_FURTHER_KEYS: {key}" for key in keys if _kind(key) not in known]


def _kind(key: str) -> str:
    """Return the kind of a key of a cell, as `key_kinds` names it."""
    return key.partition("}:")[2].partition(":")[0].replace("-", "_")


@cache
def _form(name: str) -> str:
    if name in OUTSIDE:
        return OUTSIDE[name]
    kind = OF_ALL_KINDS.get(name) or rf"{name.rpartition('_')[2]}(:.*)?"
    return rf"rs:\{{[^}}]*\}}:{kind}"
