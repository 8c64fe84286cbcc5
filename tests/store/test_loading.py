"""A store that opens sends a server the scripts that it lacks, and no others."""

import redis

from redsched.store.client.scripts import load_all
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store


def loaded(server: PrivateServer) -> int:
    """Return how many scripts this server was sent since it was last asked."""
    with redis.Redis(unix_socket_path=str(server.socket), protocol=2) as client:
        calls = client.info("commandstats").get("cmdstat_script|load", {}).get("calls", 0)
        client.config_resetstat()
    return int(calls)


async def opened(server: PrivateServer) -> int:
    """Open a store, and return how many scripts that took."""
    async with Store.connect(server.url):
        return loaded(server)


async def test_only_scripts_that_the_server_lacks_are_sent(fresh_server: PrivateServer) -> None:
    assert await opened(fresh_server) == len(load_all())
    assert await opened(fresh_server) == 0
    with redis.Redis(unix_socket_path=str(fresh_server.socket), protocol=2) as client:
        client.script_flush()
        client.script_load(load_all()["claim"].text)
    loaded(fresh_server)
    assert await opened(fresh_server) == len(load_all()) - 1
