"""Each command that only reads works for a user of the store who may do nothing else."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import redis

from redsched.cli.commands import NOUNS, entries
from redsched.scheduler import Scheduler
from redsched.store.access.roles import StoreRole
from tests.cli.conftest import Redsched
from tests.cli.parts import Ran, announce, run
from tests.cli.screens import drawn
from tests.support.builders.cells import usual_settings
from tests.support.plain_client import plain_client
from tests.support.store_users import url_as

FLEET = "new.yaml"
READING: dict[str, Sequence[str]] = {
    "status": (),  # before it finds that the deadline of a claim passed long ago
    "host list": (),
    "host show": ("h1",),
    "claim list": (),
    "claim show": ("vm",),
    "quota list": (),
    "quota show": ("web",),
    "aggregate list": (),
    "aggregate show": ("ssd",),
    "server-group list": (),
    "server-group show": ("db",),
    "shared-pool list": (),
    "shared-pool show": ("licences",),
    "explain": ("VCPU=2", "--server-group", "db"),
    "capacity": ("--by", "zone"),
    "events": (),
    "audit": (),
    "export": (),
    "function show": (),
    "plan capacity": ("VCPU=2", "--n-plus-one", "host"),
    "plan drain": ("h1",),
    "plan without": ("h1",),
    "plan rebalance": ("--for", "drain", "--empty", "h1"),
    "plan with": (FLEET,),
}
"""The commands that only read, with their arguments."""
WITHOUT_STORE = {
    "acl",
    "replay",
    "up",
    "token new",
    "token list",
    "token revoke",
    *(f"context {verb}" for verb in NOUNS["context"].verbs),
}
"""Commands that connect to no store, or to one of their own."""
SET_UP = (
    ("quota", "set", "web", "VCPU=100"),
    ("aggregate", "set", "ssd", "--metadata", "disk=nvme", "--host", "h1"),
    ("server-group", "set", "db", "--policy", "soft-anti-affinity"),
    ("shared-pool", "set", "licences", "CUSTOM_SEAT=5"),
    ("select", "VCPU=2", "--project", "web", "--id", "vm", "--server-group", "db"),
    ("select", "VCPU=1", "--id", "shelved"),
    ("claim", "shelve", "shelved"),
    ("select", "VCPU=1", "--id", "overdue"),
)


@pytest.fixture
def as_reader(redsched: Redsched, store: str) -> Callable[..., Ran]:
    """Return a function that runs a command as a reader, on a store with a bit of everything.

    One claim is overdue, which a command that only reads leaves as it is.
    """
    for arguments in SET_UP:
        redsched(*arguments).check()
    with redis.Redis.from_url(store, protocol=2) as client:
        seconds, _ = client.time()
        client.hset("rs:{c1}:claim:overdue", "expires_at_ms", 1000 * seconds)
        client.zadd("rs:{c1}:deadlines", {"overdue": 1000 * seconds})
        announce(client)  # a status without schedulers is exit code 1
    url = url_as(store, StoreRole.READER, cells=("c1",))
    return lambda *arguments: run(*arguments, environment={"REDSCHED_REDIS_URL": url})


def test_commands_that_read_write_nothing_and_need_nothing_else(
    as_reader: Callable[..., Ran], store: str, tmp_path: Path
) -> None:
    """The server counts no denied access, so that nothing is tried in vain either."""
    (tmp_path / FLEET).write_text("hosts: [{name: new, inventories: {VCPU: {total: 4}}}]")
    with plain_client(store) as operator:
        operator.ask(("ACL", "LOG", "RESET"))
        for command, arguments in READING.items():
            as_reader(*command.split(), *(str(tmp_path / one) if one == FLEET else one for one in arguments)).check()
        as_reader("select", "VCPU=1", "--dry-run").check()
        assert operator.ask(("ACL", "LOG")) == [[]]


def test_top_writes_nothing_either(as_reader: Callable[..., Ran], store: str) -> None:
    assert as_reader("host", "list").check().output
    reader = {"REDSCHED_REDIS_URL": url_as(store, StoreRole.READER, cells=("c1",))}
    with plain_client(store) as operator, drawn(reader, "top") as terminal:
        operator.ask(("ACL", "LOG", "RESET"))
        terminal.until_seen("2 hosts by fullest", "2 hosts up")
        terminal.press("\r")
        terminal.until_seen("CAPACITY")
        terminal.press("\x1b")
        terminal.until_seen("2 hosts by fullest")
        terminal.press("q")
        assert terminal.wait() == 0
        assert operator.ask(("ACL", "LOG")) == [[]]


def test_a_command_that_writes_is_refused_in_one_line(as_reader: Callable[..., Ran]) -> None:
    as_reader("host", "disable", "h1").check_failed(5, "lacks a permission", "redsched acl")


def test_each_command_is_listed_here_or_writes() -> None:
    """A new command that only reads belongs into READING. (`logs` reads what `claim show` does, and a file.)"""
    writes = entries().keys() - READING.keys() - WITHOUT_STORE - {"top", "logs"}
    assert writes == {
        *(f"host {verb}" for verb in ("drain", "enable", "disable", "write-off", "remove")),
        *(f"claim {verb}" for verb in ("release", "confirm", "renew", "fail", "move", "resize", "shelve", "unshelve")),
        *(
            f"{noun} {verb}"
            for noun in ("quota", "aggregate", "server-group", "shared-pool")
            for verb in ("set", "delete")
        ),
        *("function install", "api", "agent", "select", "run", "import", "init", "upgrade"),
    }


async def test_a_reader_of_several_cells_reads_where_ids_are_bound(clean_store: str) -> None:
    settings = usual_settings().model_copy(update={"cells": ("a", "b")})
    async with Scheduler.connect(clean_store, settings) as scheduler:
        await scheduler.init()
    async with Scheduler.connect(url_as(clean_store, StoreRole.READER), settings, read_only=True) as reader:
        assert (await reader.hosts.list(limit=1, after="")).items == ()
        with pytest.raises(Exception, match="nobody"):
            await reader.claims.get("nobody")
