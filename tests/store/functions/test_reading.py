"""What the functions for redis-cli say about a small fleet."""

import re
from dataclasses import replace
from typing import Any

import pytest
from redis.exceptions import ResponseError

from redsched.model import EndReason, HostReport, HostStatus, Inventory, ReasonCount
from redsched.store.cell import CellStore
from redsched.store.client.function_library import VERSION, library
from redsched.store.codec.replies import Member, Replacement
from redsched.store.codec.wire import mapping_of
from redsched.store.store import Store
from tests.store.functions.conftest import Ask
from tests.support.builders.cells import (
    accepted_claim,
    active,
    call_of,
    claim_on,
    member,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
)

pytestmark = pytest.mark.usefixtures("ask")


async def lapse(raw: Any, cell: CellStore, host: str, ago_s: int = 60) -> None:
    """Let the lease of a host have ended some time ago."""
    ended_ms = (await cell.tick()).now_ms - ago_s * 1000
    await raw.hset(cell.keys.host(host), "alive_until_ms", ended_ms)
    await raw.zadd(cell.keys.hosts, {host: ended_ms})


async def test_help_names_every_function_and_the_version(raw: Any, ask: Ask) -> None:
    """Without a cell, so that it also answers whoever does not know the cells."""
    lines = await raw.execute_command("FCALL_RO", "rs_help", 0)
    assert lines == await ask("rs_help")
    assert f"version {VERSION}:" in lines[0]
    (library,) = await raw.execute_command("FUNCTION", "LIST", "LIBRARYNAME", "redsched")
    about: dict[str, Any] = dict(mapping_of(library))
    functions: list[dict[str, Any]] = [dict(mapping_of(one)) for one in about["functions"]]
    assert all(one["flags"] == ["no-writes"] for one in functions)
    listed = re.findall(r"^FCALL_RO (\w+) 1 'rs:\{c1\}:meta'", "\n".join(lines), re.MULTILINE)
    assert sorted([*listed, "rs_help"]) == sorted(one["name"] for one in functions)


async def test_no_function_writes_and_every_line_fits_a_terminal(cell: CellStore, raw: Any, ask: Ask) -> None:
    await open_host(cell, "h1", VCPU=64, MEMORY_MB=262_144)
    await active(cell, "a", VCPU=3)
    await claim_on(cell, "b", VCPU=2, MEMORY_MB=1024)
    calls = (
        *("rs_help", "rs_cell", "rs_hosts", "rs_hosts ALL", "rs_host h1", "rs_claims h1", "rs_claim b"),
        *("rs_holders h1 VCPU", "rs_held VCPU", "rs_free", "rs_stale", "rs_leases", "rs_changes"),
        "rs_refuses h1 VCPU=99 MEMORY_MB=999999 max_claims=1",
    )
    async with nothing_written(raw):
        for call in calls:
            lines = await ask(*call.split())
            assert lines, call
            assert max(map(len, lines)) <= 76, call
    names = {call.split()[0] for call in calls}
    assert names == set(re.findall(r"\brs_\w+(?= 1 )", "\n".join(await ask("rs_help")))) | {"rs_help"}


async def test_the_cell_says_what_is_wrong_with_it(cell: CellStore, raw: Any, ask: Ask) -> None:
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    await lapse(raw, cell, "h2")
    await claim_on(cell)
    epoch = (await cell.tick()).epoch
    lines = await ask("rs_cell")
    assert lines[0] == f"cell c1: settled, epoch {epoch}"
    assert "hosts: 2, 1 of them without a lease (rs_stale)" in lines
    assert "claims with a lease: 1, 0 of them overdue (rs_leases)" in lines
    assert not [line for line in lines if "nothing writes" in line or "replication" in line]
    await raw.hset(cell.keys.meta, mapping={"now_ms": "1", "replid": "0" * 40})
    lines = await ask("rs_cell")
    assert "nothing writes: look for schedulers and agents in CLIENT LIST" in lines
    assert "the replication id is new: the next write checks whether data was lost" in lines


async def test_a_cell_that_settles_says_for_how_many_hosts_it_waits(cell: CellStore, ask: Ask) -> None:
    await open_host(cell)
    epoch = await new_epoch(cell)
    lines = await ask("rs_cell")
    assert lines[0] == f"cell c1: SETTLING, epoch {epoch}"
    assert re.fullmatch(r"1 hosts have not attested; it settles at the latest in \d+s", lines[2])


async def test_hosts_are_shown_by_state(cell: CellStore, raw: Any, ask: Ask) -> None:
    for name in ("open", "down", "drains", "off"):
        await open_host(cell, name, VCPU=4)
    await cell.hosts.report(report_of("new"))
    await lapse(raw, cell, "down")
    await cell.hosts.set_status("drains", HostStatus.DRAINING)
    await cell.hosts.set_status("off", HostStatus.DISABLED)
    await claim_on(cell, "a", "open", VCPU=3)
    lines = await ask("rs_hosts")
    assert {line.split()[0]: line.split()[1] for line in lines[1:-1]} == {
        "open": "OPEN",
        "down": "DOWN",
        "drains": "DRAINING",
        "off": "DISABLED",
        "new": "NOT_ATTESTED",
    }
    assert [line.split() for line in await ask("rs_hosts", "OPEN")] == [
        ["HOST", "STATE", "CLAIMS", "FREE"],
        ["open", "OPEN", "1", "VCPU=1"],
        ["1", "of", "5", "hosts"],
    ]
    (stale, last) = await ask("rs_stale")
    ended = re.fullmatch(r"down +lease ended (\d+)s ago, enabled, 0 claims", stale)
    assert ended
    assert 60 <= int(ended[1]) < 600
    assert last == "hosts without a lease: 1"


async def test_a_host_is_shown_with_its_slots_and_what_is_kept(cell: CellStore, ask: Ask) -> None:
    await open_host(cell, report=report_of(VCPU=16, external={"VCPU": 2}))
    await active(cell, "a", VCPU=3)
    await accepted_claim(cell, "b", VCPU=1)
    await cell.reservations.put("h1", "r1", {"VCPU": 4}, 60_000, 0, 1)
    lines = await ask("rs_host", "h1")
    assert lines[0] == "h1: OPEN, zone default, status enabled"
    assert re.fullmatch(r"its lease ends in \d+m\d\ds; it has attested", lines[1])
    assert lines[2] == "2 claims, 1 of them not active, 0 failures in a row"
    assert re.fullmatch(r"reserved for r1, which ends in \d+s", lines[3])
    assert lines[-1].split() == ["VCPU", "6", "16", "4", "2", "4"]


async def test_a_host_that_was_written_off_is_called_that(cell: CellStore, ask: Ask) -> None:
    await open_host(cell)
    await cell.hosts.write_off("h1", force=True)
    assert any("WRITTEN OFF" in line for line in await ask("rs_host", "h1"))
    assert "was written off" in (await ask("rs_stale"))[0]
    assert "NOT_ATTESTED: it was written off" in await ask("rs_refuses", "h1", "VCPU=1")


async def test_claims_are_shown_where_each_placement_is(cell: CellStore, ask: Ask) -> None:
    """The target of a move is a placement beside the main one."""
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    placed = await active(cell, "a", "h1", VCPU=3)
    moved = Member(
        "a", member("a", "h2", VCPU=4).candidates, replacement=Replacement("h1", placed.token, EndReason.MOVED)
    )
    (target,) = (await cell.claims.place(call_of(await cell.tick(), moved))).placed
    assert (await ask("rs_claims", "h1"))[0].split() == ["a", "active", "VCPU=3"]
    assert (await ask("rs_claims", "h2"))[0].split() == ["a", "claimed", "VCPU=4"]
    assert (await ask("rs_holders", "h2", "VCPU"))[0].split() == ["4", "VCPU", "a", "claimed", "project"]
    lines = await ask("rs_claim", "a")
    assert "active on h1: VCPU=3" in lines
    assert "claimed on h2: VCPU=4" in lines
    assert f"    token {target.token}" in lines
    assert (await ask("rs_leases"))[0].split() == ["a", "claimed", "on", "h2"]


async def test_a_claim_says_how_its_host_was_chosen(cell: CellStore, raw: Any, ask: Ask) -> None:
    """Also one of several; nothing of a placement that it no longer has, or that was edited."""
    await open_host(cell)
    text = '{"hosts":3,"left_out":{"zone":1,"VCPU":1},"ranked":[["h1",0.5,0.5],["h2",0.25,0.25]]}'
    members = [replace(member(one, "h1"), decision=text) for one in ("a", "b", "c")]
    [alone] = (await cell.claims.place(call_of(await cell.tick(), members[0]))).placed
    await cell.claims.place(call_of(await cell.tick(), *members[1:]))
    await cell.texts.decisions.write()
    chosen = "chosen as candidate 1 of 3 hosts; left out: 1 in other zones, 1 short of VCPU"
    said = [chosen, "    h1 score 0.5", "    h2 score 0.25"]
    for claim_id in ("a", "b", "c"):
        assert (await ask("rs_claim", claim_id))[-3:] == said
    for other in ("", "1 1-a.1:1:1\n" + text, (await raw.get(cell.keys.decision(alone.token)))[:-9]):
        await raw.set(cell.keys.decision(alone.token), other)
        assert not [line for line in await ask("rs_claim", "a") if "chosen" in line]


def test_reasons_are_in_the_words_of_the_command_line() -> None:
    """The functions have a table of their own, as a server reads no Python."""
    (table,) = re.findall(r"local WORDS = \{(.*?)\}", library().text, re.DOTALL)
    words = {quoted or plain: text for quoted, plain, text in re.findall(r"(?:\['(.+?)'\]|(\w+)) = '(.+?)'", table)}
    assert words
    assert {ReasonCount(reason, 1).text for reason in words} == {f"1 {text}" for text in words.values()}


async def test_a_claim_that_failed_says_why_without_control_characters(cell: CellStore, ask: Ask) -> None:
    """A terminal would obey them, and the text comes from a hook."""
    await open_host(cell)
    placed = await claim_on(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True, reason="exit code 3\n\x1b[2Jgone")
    lines = await ask("rs_claim", "a")
    assert "it is ended: failed" in lines
    assert re.fullmatch(r"last failure \d+s ago on h1: exit code 3  ?\[2Jgone", lines[-1])
    assert (await ask("rs_changes", "1"))[0].endswith("host h1 failed a")


async def test_who_holds_a_class_adds_up(cell: CellStore, ask: Ask) -> None:
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    await active(cell, "a", VCPU=1)
    await active(cell, "b", VCPU=3)
    lines = await ask("rs_holders", "h1", "VCPU")
    assert [line.split()[::2][:2] for line in lines[:-1]] == [["3", "b"], ["1", "a"]]
    assert lines[-1] == "4 VCPU held by 2 claims"
    assert await ask("rs_holders", "h1", "MEMORY_MB") == ["0 MEMORY_MB held by 0 claims"]
    assert (await ask("rs_held", "VCPU"))[0].split() == ["h1", "4", "of", "8"]
    assert (await ask("rs_held", "VCPU"))[1:] == ["VCPU is held on 1 of 2 hosts"]


async def test_free_amounts_are_those_of_hosts_that_get_claims(cell: CellStore, raw: Any, ask: Ask) -> None:
    await open_host(cell, "h1", VCPU=8, MEMORY_MB=100)
    await open_host(cell, "h2", VCPU=6)
    await open_host(cell, "h3", VCPU=32)
    await lapse(raw, cell, "h3")
    await claim_on(cell, "a", "h1", VCPU=5)
    assert [line.split() for line in await ask("rs_free")] == [
        ["MEMORY_MB", "100", "of", "100", "on", "1", "hosts,", "largest", "100", "on", "h1"],
        ["VCPU", "9", "of", "14", "on", "2", "hosts,", "largest", "6", "on", "h2"],
        ["2", "of", "3", "hosts", "get", "claims"],
    ]
    assert [line.split()[0] for line in await ask("rs_free", "VCPU")] == ["VCPU", "2"]


async def test_the_largest_amount_is_one_that_a_claim_can_take(cell: CellStore, ask: Ask) -> None:
    units = {
        "small": Inventory(100, max_unit=8),
        "steps": Inventory(11, step_size=4),
        "none": Inventory(90, min_unit=91),
    }
    for name, inventory in units.items():
        await cell.hosts.report(HostReport(name, {"VCPU": inventory}, lease_s=60))
        await cell.hosts.attest(name, "")
    (line, _) = await ask("rs_free")
    assert line.split()[-4:] == ["largest", "8", "on", "small"] or line.split()[-4:] == ["largest", "8", "on", "steps"]


async def test_a_refusal_names_every_cause(cell: CellStore, ask: Ask) -> None:
    report = report_of(VCPU=8, MEMORY_MB=100)
    await open_host(cell, report=report)
    await claim_on(cell, "a", VCPU=6)
    await cell.hosts.set_status("h1", HostStatus.DISABLED)
    assert await ask("rs_refuses", "h1", "VCPU=3", "MEMORY_MB=101", "max_claims=1") == [
        "h1 refuses: DISABLED",
        "DISABLED: an operator has set its status to disabled",
        "VCPU: 3 wanted, 2 free: capacity 8, claimed 6, external 0, kept 0",
        "MEMORY_MB: 101 is above the largest amount, 100",
        "LIMIT: it has 1 claims, 1 of them not active",
    ]
    assert (await ask("rs_refuses", "nowhere", "VCPU=1"))[0] == "nowhere refuses: UNKNOWN"


async def test_a_class_that_only_pools_have_is_pointed_to(cell: CellStore, raw: Any, ask: Ask) -> None:
    await open_host(cell)
    await raw.hset(cell.keys.host("h1"), mapping={"capacity.gpu0/VGPU": "4", "claimed.gpu0/VGPU": "1"})
    (_, cause) = await ask("rs_refuses", "h1", "VGPU=1")
    assert cause.endswith("; it has gpu0/VGPU free 3")
    assert await ask("rs_refuses", "h1", "gpu0/VGPU=3") == ["h1 takes it"]


WRONG = {
    "a key of no cell": (("rs_cell",), "nonsense", "name the cell by its key"),
    "a cell that is not here": (("rs_cell",), "rs:{c9}:meta", "there is no cell c9 on this server"),
    "no host": (("rs_host", "h9"), "", "there is no host h9 in cell c1"),
    "a claim that is unknown": (("rs_claim", "x"), "", "there is no claim x in cell c1"),
    "claims of no host": (("rs_claims", "h9"), "", "there is no host h9"),
    "too few arguments": (("rs_refuses", "h1"), "", "arguments are missing: FCALL_RO rs_refuses 1"),
    "an amount with a unit": (("rs_refuses", "h1", "MEMORY_MB=4Gi"), "", "MEMORY_MB=4Gi is no amount"),
    "an amount twice": (("rs_refuses", "h1", "VCPU=1", "VCPU=2"), "", "VCPU is given twice"),
    "a shared pool": (("rs_refuses", "h1", "pool:a/CUSTOM_A=1"), "", "is of a shared pool"),
    "a state": (("rs_hosts", "UP"), "", "UP is no state"),
    "a cursor": (("rs_hosts", "ALL", "h1"), "", "h1 is no cursor"),
    "an offset": (("rs_stale", "-1"), "", "-1 is no cursor"),
    "a sum": (("rs_free", "ALL", "0", "VCPU=many"), "", "VCPU=many is no sum"),
    "too many changes": (("rs_changes", "501"), "", "ask for 1 to 500 changes"),
}


@pytest.mark.parametrize(("call", "key", "message"), WRONG.values(), ids=WRONG)
async def test_wrong_input_gets_one_clear_line(
    cell: CellStore, raw: Any, call: tuple[str, ...], key: str, message: str
) -> None:
    name, *arguments = call
    with pytest.raises(ResponseError) as caught:
        await raw.execute_command("FCALL_RO", name, 1, key or cell.keys.meta, *arguments)
    assert str(caught.value).startswith(message) or message in str(caught.value)
    assert "script:" not in str(caught.value)


async def test_an_unknown_claim_is_refused_with_how_long_claims_are_remembered(
    cell: CellStore, raw: Any, ask: Ask
) -> None:
    with pytest.raises(ResponseError, match="ended ones are remembered for 10m00s"):
        await ask("rs_claim", "x")
    await raw.hset(cell.keys.meta, "remember_s", "90")
    with pytest.raises(ResponseError, match="ended ones are remembered for 90s"):
        await ask("rs_claim", "x")


async def test_a_reader_of_another_cell_is_refused(store: Store, reader: Any) -> None:
    """The functions give nobody a right: the server checks the keys of the call, and each command."""
    await store.cell("c2").init()
    with pytest.raises(ResponseError, match=r"(?i)permission"):
        await reader.execute_command("FCALL_RO", "rs_cell", 1, "rs:{c2}:meta")
