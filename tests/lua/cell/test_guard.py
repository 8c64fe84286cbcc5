"""The guard around scripts: what a server refuses in a slot that is being migrated, the guard refuses in any slot."""

from dataclasses import replace
from hashlib import sha1
from typing import Any

import pytest
from redis.exceptions import ResponseError

from redsched.store.client.scripts import Contract, Script, load_all
from redsched.store.codec.keys import Keys
from tests.support.builders.cells import declared_keys_cell
from tests.support.guard import UNGUARDED, found, guard, wrong_keys

KEY = "rs:{c1}:thing"
REFUSED = {
    "DEL, HSET": "redis.call('HSET', KEYS[1], 'a', '1') redis.call('DEL', KEYS[1]) "
    "redis.call('HSET', KEYS[1], 'b', '1')",
    "HDEL of the last field": "redis.call('HSET', KEYS[1], 'a', '1') redis.call('HDEL', KEYS[1], 'a') "
    "redis.call('HGET', KEYS[1], 'b')",
    "SREM of the last member": "redis.call('SADD', KEYS[1], 'a') redis.call('SREM', KEYS[1], 'a') "
    "redis.call('SADD', KEYS[1], 'b')",
    "ZREM in a loop": "redis.call('ZADD', KEYS[1], 1, 'a') for _, id in ipairs({'a', 'b'}) do "
    "redis.call('ZREM', KEYS[1], id) end",
    "PEXPIRE 0": "redis.call('SET', KEYS[1], 'a') redis.call('PEXPIRE', KEYS[1], 0) redis.call('PTTL', KEYS[1])",
    "DEL of two": "redis.call('SET', KEYS[1], 'a') redis.call('DEL', KEYS[2], KEYS[1]) redis.call('GET', KEYS[1])",
    "DEL of a stream, XADD": "redis.call('XADD', KEYS[1], '*', 'a', '1') redis.call('DEL', KEYS[1]) "
    "redis.call('XADD', KEYS[1], '*', 'a', '1')",
}
LET_THROUGH = {
    "the last touch": "redis.call('HSET', KEYS[1], 'a', '1') redis.call('DEL', KEYS[1])",
    "a key that was not there": "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'a', '1')",
    "ZREM of members that are there": "redis.call('ZADD', KEYS[1], 1, 'a', 2, 'b') redis.call('ZREM', KEYS[1], 'a') "
    "redis.call('ZREM', KEYS[1], 'b')",
    "HDEL beside a field that was read": "redis.call('HSET', KEYS[1], 'a', '1', 'b', '1') "
    "redis.call('HGETALL', KEYS[1]) redis.call('HDEL', KEYS[1], 'a') redis.call('HSET', KEYS[1], 'c', '1')",
    "an emptied stream, which stays": "local id = redis.call('XADD', KEYS[1], '*', 'a', '1') "
    "redis.call('XDEL', KEYS[1], id) redis.call('XLEN', KEYS[1])",
    "what it does not shadow": "redis.sha1hex('a')",
}


def guarded(body: str) -> str:
    """Return a script of one line, as the tests run scripts."""
    script = Script("x", f"#!lua\n{body}\nreturn 1", "", False, Contract((), True), Contract((), True))
    return guard(script).text


@pytest.mark.usefixtures("clean_store")
@pytest.mark.parametrize("body", REFUSED.values(), ids=list(REFUSED))
async def test_a_key_that_a_script_has_removed_may_not_be_touched(raw: Any, body: str) -> None:
    with pytest.raises(ResponseError, match=f"GUARD .* on {KEY}, which .* may have removed"):
        await raw.eval(guarded(body), 2, KEY, f"{KEY}:2")


@pytest.mark.usefixtures("clean_store")
@pytest.mark.parametrize("body", LET_THROUGH.values(), ids=list(LET_THROUGH))
async def test_all_else_runs_as_without_the_guard(raw: Any, body: str) -> None:
    assert await raw.eval(guarded(body), 2, KEY, f"{KEY}:2") == 1


@pytest.mark.usefixtures("clean_store")
async def test_members_that_only_the_test_has_put_there_do_not_hide_it(raw: Any) -> None:
    """In another store the removed member would be the last one. Not if the script has seen a second one."""
    await raw.sadd(KEY, "other")
    body = "redis.call('SADD', KEYS[1], 'a') {} redis.call('SREM', KEYS[1], 'a') redis.call('SADD', KEYS[1], 'b')"
    with pytest.raises(ResponseError, match="GUARD SADD"):
        await raw.eval(guarded(body.format("")), 1, KEY)
    assert await raw.eval(guarded(body.format("redis.call('SISMEMBER', KEYS[1], 'other')")), 1, KEY) == 1


async def test_the_scripts_of_a_test_run_guarded(clean_store: str) -> None:
    """Each has the engine's name in its first line and the guard after it, except for those that are exempt."""
    for name, script in load_all().items():
        assert script.text.startswith("#!lua")
        assert ("may have removed" in script.text) is (name not in UNGUARDED)
    assert load_all().keys() >= UNGUARDED


async def test_a_script_that_writes_where_it_answers_same_is_refused(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So every ALREADY_DONE in the tests of the scripts is checked to have written nothing."""
    body = "redis.call('HSET', KEYS[3], 'h1', '1') return {'ALREADY_DONE', '', 0}"
    script = replace(load_all()["init"], text=f"#!lua\n{body}", sha=sha1(f"#!lua\n{body}".encode()).hexdigest())
    monkeypatch.setitem(load_all(), "init", script)
    async with declared_keys_cell(clean_store) as cell:
        with pytest.raises(AssertionError, match=r"init\.lua answered ALREADY_DONE and has written"):
            await cell.init()


async def test_keys_in_another_order_than_the_header_says_are_refused(clean_store: str) -> None:
    async with declared_keys_cell(clean_store) as cell:
        head = cell.keys.head
        with pytest.raises(TypeError, match=r"host: rs:\{c1\}:draining"):
            await cell._cell.scripts.run("lost", (*head, cell.keys.draining, cell.keys.host("h1")), ("h1", 0, 0))
    assert len(found) == 1
    found.clear()


def test_keys_are_distinguished_by_what_they_are_of() -> None:
    """By the kind at the end of a name; keys of several kinds, and those outside all cells, by their own form."""
    keys = Keys("c1")
    right = {
        "meta": keys.meta,
        "host": keys.host("h1"),
        "former_host": keys.host("h1"),
        "claims": keys.claims("h1"),
        "object": keys.server_group("web"),
        "names": keys.pools,
        "binding": keys.binding("a"),
    }
    assert wrong_keys(list(right), list(right.values())) == []
    assert len(wrong_keys(list(right), [keys.changes] * len(right))) == len(right)
    assert wrong_keys(["host"], [keys.hosts]) == [f"host: {keys.hosts}"]
