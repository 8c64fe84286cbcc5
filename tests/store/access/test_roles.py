"""What a user of each role may do on a real server, and what it may not."""

from collections.abc import Iterator

import hiredis
import pytest

from redsched.errors import StoreUnavailable
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.access.rules import StoreUser, rules_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.embedded.binary import inspect
from redsched.store.embedded.server import PrivateServer, options
from redsched.store.store import Store
from tests.support.builders.cells import active, call_of, claim_on, member, open_host, raw_client, report_of
from tests.support.plain_client import PlainClient, plain_client
from tests.support.store_users import PASSWORD, url_as

SCHEDULER, AGENT, READER = StoreRole
H1 = ("h1",)

ANY_SCRIPT = ("0" * 40, "1", "rs:{c1}:host:h1")
READS = (
    ("HGETALL", "rs:{c1}:host:h1"),
    ("HMGET", "rs:{c1}:meta", "epoch", "seq"),
    ("HGETALL", "rs:{c1}:claim:a"),
    ("SMEMBERS", "rs:{c1}:claims:h1"),
    ("XRANGE", "rs:{c1}:changes", "-", "+"),
    ("ZRANGE", "rs:{c1}:deadlines", "0", "0"),
    ("GET", "rs:{c1}:request:d"),
    ("EXISTS", "rs:{c1}:alternates:a"),
    ("SISMEMBER", "rs:cells", "c1"),
    ("TIME",),
    ("INFO", "replication"),
    ("SCRIPT", "EXISTS", "0" * 40),
    ("SCRIPT", "LOAD", "return 1"),
    ("EVALSHA_RO", *ANY_SCRIPT),
    ("CLIENT", "SETNAME", "redsched-reader"),
)
"""What each role may do, except that a reader does not read the list of cells."""
OF_THE_CELL = (
    ("SCAN", "0"),
    ("SSCAN", "rs:{c1}:shelved", "0"),
    ("XREVRANGE", "rs:{c1}:events", "+", "-"),
    ("SMEMBERS", "rs:{c1}:aggregates"),
    ("HGETALL", "rs:{c1}:aggregate:ssd"),
    ("HGETALL", "rs:{c1}:recorder"),
    ("HGETALL", "rs:{c1}:attributes:h2"),
)
"""Reads of schedulers and readers."""
WRITES = (
    ("HSET", "rs:{c1}:host:h1", "status", "enabled"),
    ("HDEL", "rs:{c1}:claim:a", "state"),
    ("XADD", "rs:{c1}:inbox:h1", "*", "op", "end"),
    ("ZADD", "rs:{c1}:deadlines", "1", "a"),
    ("SADD", "rs:{c1}:claims:h1", "a"),
    ("SET", "rs:{c1}:request:d", "{}"),
    ("DEL", "rs:{c1}:inbox:h1"),
    ("XTRIM", "rs:{c1}:changes", "MAXLEN", "1"),
    ("PEXPIRE", "rs:{c1}:claim:a", "1"),
    ("HSET", "rs:{c1}:attributes:h1", "trait.CUSTOM_A", "1"),
    ("EVALSHA", *ANY_SCRIPT),
)
OF_SCHEDULERS = (
    ("HSET", "rs:{c1}:aggregate:ssd", "version", "1"),
    ("SADD", "rs:{c1}:quotas", "web"),
    ("XADD", "rs:{c1}:events", "*", "kind", "claimed"),
    ("HSET", "rs:{c1}:recorder", "seq", "1"),
    ("SET", "rs:{c1}:duty:record", "me"),
    ("HSET", "rs:{c1}:attributes:h2", "trait.CUSTOM_A", "1"),
    ("SET", "rs:{c1}:removed:h2", "1"),
    ("SADD", "rs:cells", "c1"),
)
FOREIGN = (
    *(("GET", key) for key in ("session:1", "rs:", "rs:other", "rs:c1:meta", "rs:{c2}:request:d", "rs:{claim:a}")),
    *(("HGETALL", f"rs:{{{cell}}}:meta") for cell in ("c2", "c11", "*", "server-group:c1")),
    ("DEL", "session:1"),
    ("HSET", "rs:{c2}:host:h1", "status", "enabled"),
    ("EVALSHA", "0" * 40, "2", "rs:{c1}:host:h1", "rs:{c2}:host:h1"),
    ("EVALSHA_RO", "0" * 40, "1", "session:1"),
)
NEVER = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("KEYS", "*"),
    ("CONFIG", "GET", "*"),
    ("CONFIG", "SET", "dir", "/"),
    ("DEBUG", "SLEEP", "1"),
    ("SHUTDOWN",),
    ("SAVE",),
    ("BGREWRITEAOF",),
    ("REPLICAOF", "NO", "ONE"),
    ("SCRIPT", "FLUSH"),
    ("SCRIPT", "KILL"),
    ("FUNCTION", "LOAD", "x"),
    ("FCALL", "f", "0"),
    ("EVAL", "return 1", "0"),
    ("EVAL_RO", "return 1", "0"),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "x"),
    ("CLIENT", "LIST"),
    ("CLIENT", "KILL", "ID", "1"),
    ("CLIENT", "PAUSE", "1"),
    ("MONITOR",),
    ("SWAPDB", "0", "1"),
    ("SELECT", "1"),
    ("RENAME", "rs:{c1}:meta", "rs:{c1}:hosts"),
    ("COPY", "rs:{c1}:meta", "rs:{c1}:hosts"),
    ("DUMP", "rs:{c1}:meta"),
    ("SORT", "rs:{c1}:aggregates"),
    ("UNLINK", "rs:{c1}:meta"),
    ("PUBLISH", "a", "b"),
    ("SUBSCRIBE", "a"),
    ("SLOWLOG", "GET"),
    ("MODULE", "LIST"),
    ("RANDOMKEY",),
    ("WAIT", "1", "1"),
)
"""What no role may do."""

MAY = {
    SCHEDULER: (*READS, *OF_THE_CELL, *WRITES, *OF_SCHEDULERS),
    AGENT: (*READS, *WRITES),
    READER: (*READS, *OF_THE_CELL),
}
MAY_NOT = {
    SCHEDULER: (*FOREIGN, *NEVER),
    AGENT: (*OF_THE_CELL, *OF_SCHEDULERS, *FOREIGN, *NEVER),
    READER: (*WRITES, *OF_SCHEDULERS, *FOREIGN, *NEVER),
}


@pytest.fixture
def operator(server: PrivateServer) -> Iterator[PlainClient]:
    """The default user of a server."""
    with plain_client(server.url) as client:
        yield client


def create(operator: PlainClient, role: StoreRole, cells: tuple[str, ...] = ("c1",)) -> str:
    """Create a user of some cells, an agent of h1, and return its name."""
    user = StoreUser(f"only-{role}", role, cells, H1 if role is AGENT else ())
    operator.ask(("ACL", "SETUSER", user.name, *rules_of(user, Settings(), PASSWORD)))
    return user.name


def refused(operator: PlainClient, user: str, command: tuple[str, ...]) -> bool:
    """Return whether a user may not send a command. The server only checks it."""
    try:
        (reply,) = operator.ask(("ACL", "DRYRUN", user, *command))
    except hiredis.ReplyError as error:
        raise AssertionError(f"{command}: {error}") from error
    return bool(reply != "OK")


@pytest.mark.parametrize("role", StoreRole)
def test_a_role_may_do_its_work(operator: PlainClient, role: StoreRole) -> None:
    user = create(operator, role)
    wanted = [one for one in MAY[role] if role is not READER or one[-2:] != ("rs:cells", "c1")]
    assert [one for one in wanted if refused(operator, user, one)] == []


@pytest.mark.parametrize("role", StoreRole)
def test_a_role_may_do_nothing_else(operator: PlainClient, role: StoreRole) -> None:
    user = create(operator, role)
    assert [one for one in MAY_NOT[role] if not refused(operator, user, one)] == []


def test_several_cells_need_the_keys_between_them(operator: PlainClient) -> None:
    """A claim id or a server group is bound to its cell by a key of no cell."""
    for role, command in ((SCHEDULER, ("SET", "rs:{claim:a}", "c1")), (READER, ("GET", "rs:{server-group:web}"))):
        assert refused(operator, create(operator, role), command)
        assert not refused(operator, create(operator, role, ("c1", "c2")), command)


async def test_the_server_enforces_it(clean_store: str) -> None:
    """Not only in a dry run, and also for what a script does."""
    async with Store.connect(clean_store) as store:
        await store.cell("c1").init()
        await open_host(store.cell("c1"))
    async with raw_client(url_as(clean_store, READER, cells=("c1",))) as reader:
        assert await reader.hget("rs:{c1}:host:h1", "status") == "enabled"
        with pytest.raises(Exception, match=r"(?i)permission"):
            await reader.hset("rs:{c1}:host:h1", "status", "disabled")
        with pytest.raises(Exception, match=r"(?i)permission"):
            await reader.get("session:1")
        sha = await reader.script_load("return redis.call('HSET', KEYS[1], 'status', 'disabled')")
        with pytest.raises(Exception, match=r"(?i)permission|can't run this command"):
            await reader.execute_command("EVALSHA_RO", sha, 1, "rs:{c1}:host:h1")
    with pytest.raises(StoreUnavailable, match="lacks a permission"):
        async with Store.connect(url_as(clean_store, READER, cells=("c1",)), Settings()):
            pass


async def test_an_agent_connects_before_any_scheduler(clean_store: str) -> None:
    """It may not add its cell to the list of cells, which only people need."""
    async with Store.connect(url_as(clean_store, AGENT, H1, ("c1",))) as store:
        assert (await store.cell("c1").hosts.report(report_of())).outcome is Outcome.OK
        with pytest.raises(StoreUnavailable, match="lacks a permission"):
            await store.cell("c1").hosts.report(report_of("h2"))


async def test_without_the_keys_of_other_hosts_a_move_could_not_be_confirmed(clean_store: str) -> None:
    """So `--host` does not restrict these: docs/operate/access-control.md."""
    async with Store.connect(clean_store) as store:
        cell = store.cell("c1")
        await cell.init()
        for host in ("h1", "h2"):
            await open_host(cell, host)
        placed = await active(cell, "a", "h1")
        with plain_client(clean_store) as operator:
            url = url_as(clean_store, AGENT, H1, ("c1",))
            everywhere = url_as(clean_store, AGENT, ("h2",), ("c1",))
            rules = rules_of(StoreUser("narrow", AGENT, ("c1",), H1), Settings(), PASSWORD)
            own = [rule.replace(":host:*", ":host:h1").replace(":claims:*", ":claims:h1") for rule in rules]
            operator.ask(("ACL", "SETUSER", "narrow", *own))
        assert url != everywhere
        narrow = url.replace("agent-c1-h1", "narrow")
        async with Store.connect(narrow) as of_h1:
            again = await of_h1.cell("c1").claims.confirm("h1", "a", placed.token)
            assert again.outcome is Outcome.ALREADY_DONE
            with pytest.raises(StoreUnavailable, match="lacks a permission"):
                await of_h1.cell("c1").claims.confirm("h1", "a", placed.token, ("host:h2",))
        async with Store.connect(url) as of_h1:
            again = await of_h1.cell("c1").claims.confirm("h1", "a", placed.token, ("host:h2",))
            assert again.outcome is Outcome.ALREADY_DONE


async def test_a_scheduler_claims_and_an_agent_may_not_declare(clean_store: str) -> None:
    async with Store.connect(url_as(clean_store, SCHEDULER, cells=("c1",))) as store:
        cell = store.cell("c1")
        await cell.init()
        await open_host(cell)
        placed = await claim_on(cell, "a", "h1")
        async with Store.connect(url_as(clean_store, AGENT, H1, ("c1",))) as of_h1:
            accepted = await of_h1.cell("c1").claims.accept("h1", "a", placed.token, 60)
            assert accepted.outcome is Outcome.OK
            with pytest.raises(StoreUnavailable, match="lacks a permission"):
                await of_h1.cell("c1").take_duty("record", "me", 1000)
        assert (await cell.claims.place(call_of(await cell.tick(), member("b", "h1")))).outcome is Outcome.OK


class WithAclFile(PrivateServer):
    """A private server with users from a file."""

    def command(self) -> list[str]:
        return [*super().command(), *options({"aclfile": str(self.folder / "users.acl")})]


def test_an_acl_file_of_all_roles_is_read(server: PrivateServer) -> None:
    """A server that cannot read it does not start."""
    started = WithAclFile(inspect(server.binary))
    users = [StoreUser(f"redsched-{role}", role, ("c1", "c2"), H1 if role is AGENT else ()) for role in StoreRole]
    lines = [" ".join(("user", user.name, *rules_of(user, Settings(), PASSWORD))) for user in users]
    (started.folder / "users.acl").write_text("\n".join((*lines, "user default on nopass ~* &* +@all", "")))
    try:
        started.launch()
        with plain_client(started.url) as operator:
            assert {*operator.ask(("ACL", "USERS"))[0]} == {"default", *(user.name for user in users)}
            assert not refused(operator, "redsched-scheduler", ("HGETALL", "rs:{c2}:meta"))
    finally:
        started.stop()


@pytest.mark.parametrize(
    ("settings", "role", "added"),
    [
        ({"redis_url": "cluster://n1"}, AGENT, {"+asking", "+cluster|slots", "+command"}),
        ({"redis_url": "redis://n1/3"}, READER, {"+select"}),
        ({"durability": "replicas=1"}, SCHEDULER, {"+wait"}),
        ({"durability": "replicas=1,fsync"}, SCHEDULER, {"+wait", "+waitaof"}),
        ({"durability": "replicas=1"}, AGENT, set()),
        ({"redis_url": "sentinel://n1/primary"}, AGENT, set()),
    ],
)
def test_settings_add_what_they_need(settings: dict[str, str], role: StoreRole, added: set[str]) -> None:
    user = StoreUser("a", role, ("c1",))
    plain = rules_of(user, Settings())
    assert {*rules_of(user, Settings.model_validate(settings))} - {*plain} == added
