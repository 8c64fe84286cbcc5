"""rs_refuses and claim.lua agree on every state of a host, including damaged fields: the first cause is claim.lua's."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import given

from redsched.model import Candidate, HostLimit
from redsched.store.cell import CellStore
from redsched.store.client.function_library import library
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Member
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.property.test_fit_twins import DAMAGED, random_need, random_state
from tests.support.builders.cells import call_of, raw_client
from tests.support.fleets.random_fleets import seeds

STATES = 60
OF_HOST = ("version", "epoch", "status", "alive_until_ms", "claims", "starting", "reservation_from_ms", "kept.VCPU")
SECOND_MS = 1000


@dataclass(frozen=True, slots=True)
class Case:
    """A host's fields, and what is asked of it."""

    fields: dict[str, str]
    amounts: dict[str, int]
    reservation: str
    max_runtime_s: int | None
    max_claims: int | None
    max_starting: int | None

    @property
    def words(self) -> list[str]:
        """The arguments of rs_refuses."""
        given = {"max_runtime_s": self.max_runtime_s, "max_claims": self.max_claims, "max_starting": self.max_starting}
        options = [f"{name}={value}" for name, value in given.items() if value is not None]
        amounts = [f"{slot}={amount}" for slot, amount in self.amounts.items()]
        return [*amounts, *options, *([f"reservation={self.reservation}"] if self.reservation else [])]


def random_case(rng: Random, epoch: str, now_ms: int) -> Case:
    """Return a host that mostly gets claims, often reserved, sometimes damaged."""
    fields = random_state(rng)
    fields |= {kind.replace("VCPU", "gpu0/VGPU"): value for kind, value in random_state(rng).items()}
    fields |= {"version": "1", "epoch": epoch, "status": "enabled", "alive_until_ms": str(now_ms + 600 * SECOND_MS)}
    fields |= {"claims": str(rng.randint(0, 3)), "starting": str(rng.randint(0, 2))}
    needs = {
        slot: random_need(_of_vcpu(fields, slot), rng) for slot in rng.sample(("VCPU", "gpu0/VGPU"), rng.randint(1, 2))
    }
    if rng.random() < 0.4:
        from_ms = now_ms + rng.choice((-60, 30, 90, 600)) * SECOND_MS
        fields |= {
            "reservation": rng.choice(("r1", "r2")),
            "reservation_from_ms": str(from_ms),
            "kept.VCPU": str(rng.randint(0, 9)),
        }
    for name, values in (
        ("epoch", ("lost", "1-00000000")),
        ("status", ("draining", "disabled", "")),
        ("alive_until_ms", (str(now_ms - SECOND_MS), "0")),
        *((name, DAMAGED) for name in OF_HOST),
    ):
        if rng.random() < 0.06:
            fields[name] = rng.choice(values)
    for name in [name for name in fields if rng.random() < 0.02]:
        del fields[name]
    return Case(
        fields,
        needs,
        rng.choice(("", "", "r1")),
        rng.choice((None, None, 60)),
        rng.choice((None, None, 2)),
        rng.choice((None, None, 1)),
    )


def _of_vcpu(fields: dict[str, str], slot: str) -> dict[str, str]:
    """Return the fields of a slot as those of VCPU."""
    return {name.replace(slot, "VCPU"): value for name, value in fields.items() if name.endswith(f".{slot}")}


async def claim_says(cell: CellStore, case: Case, number: int) -> str:
    """Return the cause of claim.lua's refusal; '' if it places the claim."""
    host = f"h{number}"
    limit = HostLimit(case.max_claims, case.max_starting)
    call = call_of(await cell.tick(), Member(f"c{number}", (Candidate(host, case.amounts),)))
    call = replace(
        call,
        project=f"p{number}",  # the sums of one would be beyond the range of numbers
        reservation=case.reservation,
        max_runtime_s=case.max_runtime_s or 0,
        limits={} if limit == HostLimit() else {host: limit},
    )
    answer = await cell.claims.place(call)
    assert answer.outcome in (Outcome.OK, Outcome.FULL)
    return "" if answer.outcome is Outcome.OK else answer.looked_at[0].cause


async def function_says(cell: CellStore, raw: Any, case: Case, number: int) -> str:
    """Return the cause on the first line of rs_refuses, which names it again with its details; '' for none."""
    host = f"h{number}"
    first, *rest = await raw.execute_command("FCALL_RO", "rs_refuses", 1, cell.keys.meta, host, *case.words)
    if first == f"{host} takes it":
        return ""
    cause = str(first.removeprefix(f"{host} refuses: "))
    assert rest[0].startswith(f"{cause}: ")
    return cause


async def ask_both(cell: CellStore, raw: Any, rng: Random) -> set[str]:
    await raw.flushall()
    await cell.init()
    clock = await cell.tick()
    cases = [random_case(rng, clock.epoch, clock.now_ms) for _ in range(STATES)]
    pipe = raw.pipeline(transaction=False)
    for number, case in enumerate(cases):
        pipe.hset(cell.keys.host(f"h{number}"), mapping=case.fields)
    await pipe.execute()
    said = [await function_says(cell, raw, case, number) for number, case in enumerate(cases)]
    claimed = [await claim_says(cell, case, number) for number, case in enumerate(cases)]
    assert [one for one in zip(cases, said, claimed, strict=True) if one[1] != one[2]] == []
    return set(said)


def test_both_name_the_same_cause(server: PrivateServer) -> None:
    seen = set[str]()
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        store = loop.run(stack.enter_async_context(Store.connect(server.url)))
        raw = loop.run(stack.enter_async_context(raw_client(server.url)))
        loop.run(raw.function_load(library().text, replace=True))

        @given(seeds)
        def agree(seed: int) -> None:
            seen.update(loop.run(ask_both(store.cell("c1"), raw, Random(seed))))

        agree()
        loop.run(raw.function_flush())
        loop.run(stack.aclose())
    causes = {"", "UNKNOWN", "NOT_ATTESTED", "DOWN", "DISABLED", "DRAINING", "LIMIT", "VCPU", "gpu0/VGPU"}
    assert seen == causes
