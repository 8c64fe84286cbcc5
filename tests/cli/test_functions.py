"""`redsched functions install` and `show`, by the noun's plural, as people type it."""

from collections.abc import Iterator

import pytest
import redis

from redsched.store.access.roles import StoreRole
from redsched.store.client.function_library import VERSION, library
from tests.cli.parts import run
from tests.support.store_users import url_as


@pytest.fixture
def client(store: str) -> Iterator[redis.Redis]:
    """A client of a store without functions: emptying a store leaves them."""
    with redis.Redis.from_url(store, protocol=2, decode_responses=True) as client:
        client.function_flush()
        yield client
        client.function_flush()


def test_the_functions_are_installed_once_and_shown(store: str, client: redis.Redis) -> None:
    """In a store without a cell."""
    shown = run("functions", "show", "--url", store).check().output
    assert shown.splitlines() == [
        f"the store has none of redsched's functions; this release has version {VERSION}",
        "`redsched functions install` installs what is missing or older",
    ]
    installed = run("functions", "install", "--url", store).check().output
    assert installed == f"the store has version {VERSION} now; it had none\n"
    again = run("functions", "install", "--url", store).check().output
    assert again == f"the store has version {VERSION} already: nothing was changed\n"
    shown = run("functions", "show", "--url", store).check().output
    assert shown.startswith(f"the store has version {VERSION}; this release has version {VERSION}\n")
    assert "FCALL_RO rs_host 1 'rs:{c1}:meta' HOST\n" in shown
    as_json = run("function", "show", "--json", "--url", store).check().json()
    assert as_json == {"release": VERSION, "primaries": [{"primary": "the store", "version": VERSION}]}
    assert not client.keys()


def test_a_newer_version_is_replaced_only_by_force(store: str, client: redis.Redis) -> None:
    client.function_load(library().text.replace(f"VERSION = {VERSION}\n", f"VERSION = {VERSION + 1}\n", 1))
    run("functions", "install", "--url", store).check_failed(3, f"version {VERSION + 1}", "nothing was installed")
    forced = run("functions", "install", "--force", "--url", store).check().output
    assert forced == f"the store has version {VERSION} now; it had version {VERSION + 1}\n"


def test_who_may_not_install_is_told_who_may(store: str, client: redis.Redis) -> None:
    run("functions", "install", "--url", store).check()
    reader = {"REDSCHED_REDIS_URL": url_as(store, StoreRole.READER, cells=("c1",))}
    run("functions", "install", environment=reader).check_failed(5, "may not install functions", "+function|load")
    assert run("functions", "show", environment=reader).check().output.startswith(f"the store has version {VERSION}")
