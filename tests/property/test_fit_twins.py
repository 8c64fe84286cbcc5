"""Invariant 8: the fit checks of Python and Lua agree on every state, including damaged fields."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given

from redsched.cache.columns import Columns
from redsched.decide.fit import fits
from redsched.model.validation import MAX_AMOUNT
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support.builders.cells import call_of, member, raw_client
from tests.support.fleets.random_fleets import seeds

STATES = 60
KINDS = ("capacity", "claimed", "external", "min", "max", "step")
EDGES = (0, 1, 2, 3, 4, 2**31, 2**32, 2**52, MAX_AMOUNT - 1, MAX_AMOUNT)
DAMAGED = ("nan", "inf", "-1", "2.5", "1e3", "0x10", "", " 4", "+4", "004", str(2**53), str(2**53 + 1), "9" * 30)


def random_amount(rng: Random) -> int:
    """Return a small number, so that amounts often coincide, or an extreme of the valid range."""
    return rng.choice((rng.randint(0, 12), rng.randint(0, 12), rng.choice(EDGES)))


def random_state(rng: Random) -> dict[str, str]:
    """Return a slot's fields: some are absent, and sometimes one is damaged."""
    fields = {f"{kind}.VCPU": str(random_amount(rng)) for kind in KINDS if kind != "step" and rng.random() < 0.7}
    fields["capacity.VCPU"] = str(max(random_amount(rng), rng.randint(0, 20)))
    if rng.random() < 0.5:
        fields["step.VCPU"] = str(rng.randint(1, 4))
    if rng.random() < 0.2:
        fields[f"{rng.choice(KINDS)}.VCPU"] = rng.choice(DAMAGED)
    return fields


def random_need(fields: dict[str, str], rng: Random) -> int:
    """Return an amount to request, often exactly the free amount or one more or less."""
    if rng.random() < 0.3:
        return max(1, random_amount(rng))
    numbers = (fields.get(f"{kind}.VCPU", "0") for kind in KINDS[:3])
    capacity, claimed, external = (int(one) if one.isascii() and one.isdecimal() else 0 for one in numbers)
    return min(MAX_AMOUNT, max(1, capacity - claimed - external + rng.choice((-1, 0, 0, 1))))


def python_says(fields: dict[str, str], need: int) -> bool:
    """Return whether the amount fits according to Python, over columns filled as by the scheduler."""
    columns = Columns(1)
    columns.put("h", fields)
    families = (columns.amounts[kind] for kind in KINDS)
    return bool(fits(need, *(one["VCPU"].item(0) if "VCPU" in one else one.default for one in families)))


async def lua_says(cell: CellStore, needs: list[int]) -> list[bool]:
    """Return whether each amount fits according to claim.lua, each on a separate host and for a project of its own."""
    clock = await cell.tick()
    calls = (
        replace(call_of(clock, member(f"c{n}", f"h{n}", VCPU=need)), project=f"p{n}") for n, need in enumerate(needs)
    )
    answers = await asyncio.gather(*map(cell.claims.place, calls))
    assert {one.outcome for one in answers} <= {Outcome.OK, Outcome.FULL}
    return [one.outcome is Outcome.OK for one in answers]


async def ask_both(cell: CellStore, raw: Any, states: list[dict[str, str]], needs: list[int]) -> None:
    await raw.flushall()
    await cell.init()
    clock = await cell.tick()
    open_host = {"version": "1", "epoch": clock.epoch, "status": "enabled", "alive_until_ms": str(MAX_AMOUNT)}
    pipe = raw.pipeline(transaction=False)
    for number, fields in enumerate(states):
        pipe.hset(cell.keys.host(f"h{number}"), mapping=open_host | fields)
    await pipe.execute()
    lua = await lua_says(cell, needs)
    python = [python_says(fields, need) for fields, need in zip(states, needs, strict=True)]
    assert [one for one in zip(states, needs, lua, python, strict=True) if one[2] != one[3]] == []
    assert {True, False} <= set(lua)


def test_lua_and_python_agree_on_every_state(server: PrivateServer) -> None:
    """Each example has many hosts in one pipeline, with a request near the free amount of each."""
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        store = loop.run(stack.enter_async_context(Store.connect(server.url)))
        raw = loop.run(stack.enter_async_context(raw_client(server.url)))

        @given(seeds)
        def agree(seed: int) -> None:
            rng = Random(seed)
            states = [random_state(rng) for _ in range(STATES)]
            loop.run(ask_both(store.cell("c1"), raw, states, [random_need(one, rng) for one in states]))

        agree()
        loop.run(stack.aclose())
