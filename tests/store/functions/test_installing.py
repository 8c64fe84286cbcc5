"""Installing the functions: what it replaces, what it refuses to replace, and where the functions are afterwards."""

import hashlib
from typing import Any

import pytest

from redsched.errors import Conflict, StoreUnavailable
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.client.function_library import NAME, VERSION, library, version_of
from redsched.store.codec.wire import mapping_of
from redsched.store.commands.functions import Installation, Installed
from redsched.store.embedded.binary import inspect
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import raw_client
from tests.support.setups.cluster import cells_apart, cluster_setup
from tests.support.setups.node import HOST, Node
from tests.support.setups.sentinel import Replica
from tests.support.store_users import url_as
from tests.support.waiting import wait_until

DIGESTS = {
    1: "8aa0fecdcc24f6319e21606b6ccd46608258229aeaaf14c1ca2b1e76de46ce95",
    2: "043fae8fe2659eaac2f9edfe12885f38b1feb54b434e942ad667433fdf497201",
    3: "99ce90d7771e7f94b8a47052d9918599977c930c20fa6bac8e7b2c629fcbafc5",
    4: "77f85f84e592d1b2b5a36bf6a2b3525fa030fd14c9ec9f11a63bc644371aa455",
    5: "fc6df984d2f9c5e6f3dc8bd38f9198bbed56701ddeacc0fbf6b1e05792b08f28",
    6: "e1616e9f00f35b8ad143c4b2232cfe2e536e79780d89dccd238efc8bce3e4566",
    7: "87586eb66efc6e0cce9cb981f83f7b849af083e0c681c3e35841e0a994ced265",
}
"""The digest of the text of each version. Raise VERSION when the functions change: servers replace only older ones."""
OURS = "the store"
OTHER = f"#!lua name={NAME}\nredis.register_function('theirs', function() return 1 end)"


def text_of(version: int) -> str:
    """Return the library as another release would have it."""
    return library().text.replace(f"VERSION = {VERSION}\n", f"VERSION = {version}\n", 1)


async def installed(raw: Any) -> str:
    """Return the text of the library on the server."""
    (found,) = await raw.execute_command("FUNCTION", "LIST", "LIBRARYNAME", NAME, "WITHCODE")
    return mapping_of(found)["library_code"]


def test_each_version_has_one_text() -> None:
    """Two servers that report one version have the same functions."""
    assert hashlib.sha256(library().text.encode()).hexdigest() == DIGESTS[VERSION]
    assert max(DIGESTS) == VERSION


async def test_an_older_version_is_replaced_and_the_same_one_is_left(clean_store: str, raw: Any) -> None:
    async with Store.connect(clean_store) as store:
        assert [one.version for one in await store.functions.show()] == [None]
        assert await store.functions.install() == [Installed(OURS, Installation.INSTALLED, None)]
        assert await store.functions.install() == [Installed(OURS, Installation.UNCHANGED, VERSION)]
        await raw.function_load(text_of(0), replace=True)
        assert [one.version for one in await store.functions.show()] == [0]
        assert await store.functions.install() == [Installed(OURS, Installation.REPLACED, 0)]
    assert await installed(raw) == library().text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (text_of(VERSION + 1), f"has version {VERSION + 1} of the functions, this release {VERSION}"),
        (library().text + "\n-- edited", f"has version {VERSION} of the functions, but other code"),
        (OTHER, "has a library 'redsched' that redsched has not made"),
    ],
    ids=["newer", "edited", "of somebody else"],
)
async def test_anything_else_is_replaced_only_by_force(clean_store: str, raw: Any, text: str, message: str) -> None:
    await raw.function_load(text, replace=True)
    async with Store.connect(clean_store) as store:
        with pytest.raises(Conflict, match=message):
            await store.functions.install()
        assert await installed(raw) == text
        assert await store.functions.install(force=True) == [Installed(OURS, Installation.REPLACED, version_of(text))]
    assert await installed(raw) == library().text


async def test_functions_of_other_applications_stay(clean_store: str, raw: Any) -> None:
    await raw.function_load(OTHER.replace(NAME, "theirs"))
    async with Store.connect(clean_store) as store:
        await store.functions.install()
    assert await raw.execute_command("FCALL", "theirs", 0) == 1


@pytest.mark.parametrize("role", StoreRole)
async def test_no_role_of_redsched_may_install(clean_store: str, raw: Any, role: StoreRole) -> None:
    settings = Settings().model_copy(update={"cells": ()})
    async with Store.connect(url_as(clean_store, role, cells=("c1",)), settings, read_only=True) as store:
        with pytest.raises(StoreUnavailable, match=r"may not install functions: .*; use the login of an administrator"):
            await store.functions.install()
        if role is not StoreRole.AGENT:
            assert [one.version for one in await store.functions.show()] == [None]
    assert await raw.function_list() == []


async def test_a_replica_gets_the_functions_and_refuses_others(server: PrivateServer) -> None:
    """It reads there too: a replica takes the load of whoever looks."""
    with Node(inspect(server.binary), {}) as primary:
        primary.launch()
        with Replica(inspect(server.binary), {}, {"replicaof": f"{HOST} {primary.port}"}) as replica:
            replica.launch()
            await wait_until(replica.linked)
            async with Store.connect(f"redis://{HOST}:{primary.port}") as store:
                await store.cell("c1").init()
                await store.functions.install()
            async with raw_client(f"redis://{HOST}:{replica.port}") as reader:
                await wait_until(lambda: replica.says("keyspace", "db0"))
                lines = await reader.execute_command("FCALL_RO", "rs_cell", 1, "rs:{c1}:meta")
                assert lines[0].startswith("cell c1: settled")
            settings = Settings().model_copy(update={"cells": ()})
            async with Store.connect(f"redis://{HOST}:{replica.port}", settings, read_only=True) as store:
                await store.functions.install()  # nothing is to be changed
                with primary.asked() as client:
                    client.function_flush()
                await wait_until(lambda: not has_functions(replica))
                with pytest.raises(StoreUnavailable, match="check that it runs and is the primary"):
                    await store.functions.install()


def has_functions(node: Node) -> bool:
    with node.asked() as client:
        return bool(client.function_list())


async def test_every_primary_of_a_cluster_gets_them(server: PrivateServer) -> None:
    """Each shard has its own; a call goes to the shard of the cell, because its only key has the tag of the cell."""
    with cluster_setup(2, 0, inspect(server.binary)) as cluster:
        cells = cells_apart(2)
        settings = Settings(cells=tuple(cells))
        async with Store.connect(cluster.url, settings) as store:
            done = await store.functions.install()
            assert [one.done for one in done] == [Installation.INSTALLED] * 2
            assert sorted(one.primary for one in done) == sorted(f"{HOST}:{one.port}" for one in cluster.nodes)
            with cluster.nodes[0].asked() as client:
                client.function_load(text_of(0), replace=True)
            assert sorted(one.version or 0 for one in await store.functions.show()) == [0, VERSION]
            assert {one.done for one in await store.functions.install()} == {
                Installation.REPLACED,
                Installation.UNCHANGED,
            }
            for cell in cells:
                await store.cell(cell).init()
                with cluster.primary(cell).asked() as client:
                    lines = client.execute_command("FCALL_RO", "rs_cell", 1, store.cell(cell).keys.meta)
                assert lines[0].startswith(f"cell {cell}: settled")
