"""No call looks at more than 500 hosts or claims, and following the cursors visits each once."""

import re
from typing import Any

import pytest
from redis.exceptions import ResponseError

from redsched.store.cell import CellStore
from tests.store.functions.conftest import Ask

HOSTS, PAGE, CALLS = 1300, 500, 3
NAMES = {f"host-{number:04d}" for number in range(HOSTS)}


async def write_hosts(cell: CellStore, raw: Any, **more: str) -> None:
    """Write the hosts of a large cell: 8 VCPU each, of which 3 are claimed."""
    clock = await cell.tick()
    fields = {"version": "1", "epoch": clock.epoch, "status": "enabled", "alive_until_ms": str(clock.now_ms + 10**6)}
    fields |= {"capacity.VCPU": "8", "claimed.VCPU": "3", "claims": "1"} | more
    pipe = raw.pipeline(transaction=False)
    for name in NAMES:
        pipe.hset(cell.keys.host(name), mapping=fields)
        pipe.zadd(cell.keys.hosts, {name: int(fields["alive_until_ms"])})
    await pipe.execute()


async def pages(ask: Ask, *call: str) -> list[list[str]]:
    """Return the lines of each call, following the last line of each as a person does."""
    found = list[list[str]]()
    while True:
        lines = await ask(*call)
        following = re.fullmatch(r"next: FCALL_RO (\w+) 1 rs:\{c1\}:meta (.+)", lines[-1])
        found.append(lines[:-1] if following else lines)
        if not following:
            return found
        assert following[1] == call[0]
        assert not set(lines[-1]) & set("*?'\"$;&|"), "a shell must leave it alone"
        call = (call[0], *following[2].split())


@pytest.mark.parametrize("call", [("rs_hosts",), ("rs_held", "VCPU"), ("rs_stale",)], ids=lambda call: call[0])
async def test_every_host_is_visited_once(cell: CellStore, raw: Any, ask: Ask, call: tuple[str, ...]) -> None:
    await write_hosts(cell, raw, **({"alive_until_ms": "1"} if call[0] == "rs_stale" else {}))
    found = await pages(ask, *call)
    hosts = [[line.split()[0] for line in lines[:-1] if line.startswith("host-")] for lines in found]
    assert sorted(name for names in hosts for name in names) == sorted(NAMES)
    assert max(map(len, hosts)) <= PAGE
    assert len(found) == CALLS


async def test_hosts_that_report_meanwhile_are_visited_all_the_same(cell: CellStore, raw: Any, ask: Ask) -> None:
    """Reports move hosts to the end of the sorted set, so a rank would be no cursor."""
    await write_hosts(cell, raw)
    first = await ask("rs_hosts")
    seen = {line.split()[0] for line in first[1:-2]}
    await raw.zadd(cell.keys.hosts, {name: 9 * 10**15 + number for number, name in enumerate(sorted(seen))})
    rest = await pages(ask, "rs_hosts", *first[-1].split("meta ")[1].split())
    assert {line.split()[0] for lines in rest for line in lines[1:-1]} | seen == NAMES


async def test_sums_are_carried_from_call_to_call(cell: CellStore, raw: Any, ask: Ask) -> None:
    await write_hosts(cell, raw)
    await raw.hset(cell.keys.host("host-0700"), "claimed.VCPU", "1")
    found = await pages(ask, "rs_free")
    assert len(found) == CALLS
    assert [line.split() for line in found[-1]] == [
        [
            "VCPU",
            str(5 * HOSTS + 2),
            "of",
            str(8 * HOSTS),
            "on",
            str(HOSTS),
            "hosts,",
            "largest",
            "7",
            "on",
            "host-0700",
        ],
        [str(HOSTS), "of", str(HOSTS), "hosts", "get", "claims"],
    ]


async def test_hosts_with_many_fields_take_more_calls(cell: CellStore, raw: Any, ask: Ask) -> None:
    """A call reads about 16,000 fields, because each takes the server time."""
    await write_hosts(cell, raw, **{f"capacity.gpu{number}/VGPU": "1" for number in range(120)})
    found = await pages(ask, "rs_held", "VCPU")
    hosts = [line.split()[0] for lines in found for line in lines[:-1]]
    assert sorted(hosts) == sorted(NAMES)
    assert max(map(len, found)) < 150


@pytest.mark.parametrize(
    "call", [("rs_claims", "h1"), ("rs_holders", "h1", "VCPU"), ("rs_leases",)], ids=lambda one: one[0]
)
async def test_every_claim_is_visited_once(cell: CellStore, raw: Any, ask: Ask, call: tuple[str, ...]) -> None:
    ids = {f"claim{number:04d}" for number in range(HOSTS)}
    await raw.hset(cell.keys.host("h1"), "version", "1")
    await raw.sadd(cell.keys.claims("h1"), *ids)
    await raw.zadd(cell.keys.deadlines, dict.fromkeys(ids, 9 * 10**15))
    pipe = raw.pipeline(transaction=False)
    for one in ids:
        pipe.hset(cell.keys.claim(one), mapping={"host": "h1", "state": "claimed", "amount.VCPU": "1"})
        pipe.hset(cell.keys.claim(one), mapping={"expires_at_ms": str(9 * 10**15), "claimed_at_ms": "1"})
    await pipe.execute()
    found = [[re.findall(r"\bclaim\d{4}\b", line) for line in lines] for lines in await pages(ask, *call)]
    named = [[name for names in lines for name in names] for lines in found]
    assert sorted(name for names in named for name in names) == sorted(ids)
    assert max(map(len, named)) <= PAGE


@pytest.mark.parametrize("call", ["rs_stale", "rs_leases"])
@pytest.mark.parametrize("is_tied", [False, True], ids=["at different times", "at the same time"])
async def test_what_is_gone_meanwhile_hides_nothing(
    cell: CellStore, raw: Any, ask: Ask, call: str, is_tied: bool
) -> None:
    """Hosts that come back, and leases that end, leave the front of the order: a rank would skip as many others."""
    names = sorted(NAMES)
    key = cell.keys.hosts if call == "rs_stale" else cell.keys.deadlines
    await raw.zadd(key, {name: 1000 if is_tied else 1000 + number for number, name in enumerate(names)})
    lease = {"expires_at_ms": "1000", "claimed_at_ms": "1", "host": "h1", "state": "claimed", "amount.VCPU": "1"}
    pipe = raw.pipeline(transaction=False)
    for name in names:
        pipe.hset(cell.keys.host(name), mapping={"version": "1", "alive_until_ms": "1000"})
        pipe.hset(cell.keys.claim(name), mapping=lease)
    await pipe.execute()
    first = await ask(call)
    await raw.zrem(key, *names[:PAGE])
    rest = await pages(ask, call, *first[-1].split("meta ")[1].split())
    found = [name for lines in (first, *rest) for line in lines for name in re.findall(r"^host-\d{4}", line)]
    assert found == names


async def test_a_rank_is_no_longer_a_cursor(ask: Ask) -> None:
    for call in ("rs_stale", "rs_leases"):
        with pytest.raises(ResponseError, match="500 is no cursor: take it from the last line of the call before"):
            await ask(call, "500")
