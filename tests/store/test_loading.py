"""A store sends a server only the scripts that it lacks when it opens."""

import redis

from redsched.store.client.scripts import load_all
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store


def loaded(server: PrivateServer) -> int:
    """Return how many scripts were sent to this server since the last call."""
    with redis.Redis(unix_socket_path=str(server.socket), protocol=2) as client:
        calls = client.info("commandstats").get("cmdstat_script|load", {}).get("calls", 0)
        client.config_resetstat()
    return int(calls)


async def opened(server: PrivateServer) -> int:
    """Open a store, and return how many scripts it sent."""
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
