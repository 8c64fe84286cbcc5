"""Local work: what a collector or the operator's file lists is a claim of this host until it is no longer listed."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from redsched.agent.collectors.base import LocalWork, Observation, Work
from redsched.agent.collectors.local_file import LocalFile
from redsched.agent.journal.journal import open_journal
from redsched.errors import InvalidRequest
from redsched.model import Claim, ClaimStatus, EndReason
from tests.agent.conftest import H1, TWO, World
from tests.support.waiting import wait_until

VM = LocalWork("vm-7", {"VCPU": 3}, "web", "alice")


class Finder:
    """A host whose local work the test sets."""

    name, cell = "h1", "c1"
    period_s: float | None = 0.02

    def __init__(self, *local: LocalWork) -> None:
        self.local = local
        self.works: Sequence[Work] = ()
        self.looks = 0

    def look(self, works: Sequence[Work]) -> Observation:
        self.works = works
        self.looks += 1
        return Observation(H1, local=self.local)


class Second(Finder):
    """The same for host h2."""

    name = "h2"

    def look(self, works: Sequence[Work]) -> Observation:
        return dataclasses.replace(super().look(works), report=dataclasses.replace(H1, name="h2"))


async def has_ended(world: World, claim_id: str) -> Claim:
    claim = await world.reaches(claim_id, ClaimStatus.ENDED)
    assert claim.end_reason is EndReason.RELEASED
    return claim


async def test_what_a_collector_names_is_a_claim_until_it_names_it_no_more(world: World) -> None:
    finder = Finder(VM)
    await world.start([finder], hook=world.hook)
    claim = await world.reaches("vm-7", ClaimStatus.ACTIVE)
    assert (dict(claim.slots), claim.project, claim.consumer) == ({"VCPU": 3}, "web", "alice")
    assert (await world.host())["claimed.VCPU"] == "3"
    finder.local = ()
    await has_ended(world, "vm-7")
    assert (await world.host())["claimed.VCPU"] == "0"
    assert world.calls() == [], "nobody asked for it to be started or stopped"
    finder.local = (VM,)
    assert (await world.reaches("vm-7", ClaimStatus.ACTIVE)).token != claim.token


async def test_its_new_amounts_are_reported(world: World) -> None:
    finder = Finder(VM)
    await world.start([finder])
    await world.reaches("vm-7", ClaimStatus.ACTIVE)
    finder.local = (LocalWork("vm-7", {"VCPU": 1}, "web", "alice"),)

    async def is_told() -> bool:
        return (await world.host())["claimed.VCPU"] == "1"

    await wait_until(is_told)


async def test_it_is_held_even_where_the_host_is_full(world: World) -> None:
    finder = Finder()
    await world.start([finder])
    await world.place("a", {"VCPU": 8})
    await world.reaches("a", ClaimStatus.ACTIVE)
    finder.local = (VM,)
    await world.reaches("vm-7", ClaimStatus.ACTIVE)
    host = await world.host()
    assert (host["claimed.VCPU"], host["over.VCPU"]) == ("11", "1")
    await has_not_failed(world, "a")


async def has_not_failed(world: World, claim_id: str) -> None:
    claim = await world.claim(claim_id)
    assert claim is not None
    assert claim.state is ClaimStatus.ACTIVE


async def test_it_survives_a_wipe_and_a_restart_and_is_distinguished_by_the_collector(world: World) -> None:
    finder = Finder(VM)
    agent = await world.start([finder])
    before = await world.reaches("vm-7", ClaimStatus.ACTIVE)
    world.flush()
    after = await world.reaches("vm-7", ClaimStatus.ACTIVE)
    assert (after.slots, after.token) == (before.slots, before.token), "restored from the journal"
    await world.stop(agent)
    await world.start([finder])
    await wait_until(lambda: [work.claim_id for work in finder.works] == ["vm-7"])
    await has_not_failed(world, "vm-7")


async def test_what_is_gone_while_the_agent_was_away_ends_when_it_is_back(world: World) -> None:
    finder = Finder(VM)
    agent = await world.start([finder], hook=world.hook)
    await world.reaches("vm-7", ClaimStatus.ACTIVE)
    await world.stop(agent)
    finder.local = ()
    await world.start([finder], hook=world.hook)
    await has_ended(world, "vm-7")
    assert world.calls() == []


@pytest.mark.parametrize("wiped", [False, True])
async def test_with_a_new_journal_it_is_what_it_was_and_is_not_started(world: World, wiped: bool) -> None:
    """Only the store still has the claim, as one to accept; its digest shows that it must not be started."""
    finder = Finder(VM)
    agent = await world.start([finder], hook=world.hook)
    await world.reaches("vm-7", ClaimStatus.ACTIVE)
    await world.stop(agent)
    if wiped:
        await world.cell.raise_epoch((await world.cell.tick()).epoch)
    await world.lapse()
    finder.local = ()
    await world.start([finder], hook=world.hook, journal="new.sqlite")
    await has_ended(world, "vm-7")
    assert world.calls() == []


async def test_an_id_that_another_claim_has_is_left_to_it(world: World) -> None:
    await world.start([Finder()], hook=world.hook)
    await world.place("vm-7", TWO)
    await world.reaches("vm-7", ClaimStatus.ACTIVE)
    await world.close()
    finder = Finder(VM, LocalWork("vm-8", {"VCPU": 1}))
    await world.start([finder], hook=world.hook)
    await world.reaches("vm-8", ClaimStatus.ACTIVE)
    claim = await world.claim("vm-7")
    assert claim is not None
    assert dict(claim.slots) == TWO
    assert world.calls("stop") == []


async def test_an_id_in_use_elsewhere_is_refused_and_logged_once(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    finder = Finder(VM)
    first = await world.start([finder])
    await world.reaches("vm-7", ClaimStatus.ACTIVE)
    second = Second(VM)
    await world.start([second], journal="second.sqlite")
    said = ""

    def is_logged() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return "local work has the id of another claim" in said

    await wait_until(is_logged, what="the refusal is logged")
    looks = second.looks
    await wait_until(lambda: second.looks > looks + 5)
    said += capsys.readouterr().out
    assert said.count("local work has the id of another claim") == 1
    finder.local = ()

    async def has_moved() -> bool:
        claim = await world.claim("vm-7")
        return claim is not None and (claim.host, claim.state) == ("h2", ClaimStatus.ACTIVE)

    await wait_until(has_moved, what="h2 has it once h1 has said that it is gone")
    assert not first.done()


async def test_what_its_owner_releases_is_stopped(world: World) -> None:
    finder = Finder(VM)
    world.on("stop", f"touch {world.folder}/stopped")
    await world.start([finder], hook=world.hook, collect_s=600)
    await world.reaches("vm-7", ClaimStatus.ACTIVE)
    finder.period_s = 600
    await world.cell.claims.release("h1", "vm-7")
    await wait_until(lambda: (world.folder / "stopped").exists())


# -- the file


def write(world: World, text: str) -> str:
    path = world.folder / "local.yaml"
    (world.folder / "new.yaml").write_text(text)
    (world.folder / "new.yaml").rename(path)
    return str(path)


CONSOLE = "local:\n  - {id: console, slots: {VCPU: 2}, project: ops, consumer: alice}\n"


async def test_what_an_operator_writes_down_is_held_and_released(world: World) -> None:
    """Nothing else changes on the host, so only the file makes the agent look at it again."""
    await world.start(local=write(world, CONSOLE))
    claim = await world.reaches("console", ClaimStatus.ACTIVE)
    assert (dict(claim.slots), claim.project, claim.consumer) == ({"VCPU": 2}, "ops", "alice")
    write(world, "local: []\n")
    await has_ended(world, "console")


async def test_a_file_that_cannot_be_read_ends_no_claim(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    agent = await world.start(local=write(world, CONSOLE))
    await world.reaches("console", ClaimStatus.ACTIVE)
    for text in ("local: [", "local:\n  - {id: console}\n", ""):
        write(world, text)
        seen: list[str] = []

        def is_said(seen: list[str] = seen) -> bool:
            seen.append(capsys.readouterr().out)
            return "local file invalid, keeping its previous content" in "".join(seen)

        await wait_until(is_said)
    (world.folder / "local.yaml").unlink()
    await has_not_failed(world, "console")
    await world.stop(agent)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        await world.start(local=str(world.folder / "local.yaml"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "must have `local:`"),
        ("local: []\nmore: 1", "must have `local:`"),
        ("local: [7]", "entry 1: it must be a mapping"),
        ("local: [{id: a, slots: {VCPU: 1}, cpus: 2}]", "entry 1: unknown key 'cpus'"),
        ("local: [{id: a}]", "slots must be a mapping"),
        ("local: [{id: a, slots: {}}]", "has no amounts"),
        ("local: [{id: a, slots: {VCPU: 0}}]", "VCPU must be a whole number from 1"),
        ("local: [{id: a, slots: {CPU: 1}}]", "unknown resource class 'CPU'"),
        ("local: [{slots: {VCPU: 1}}]", "claim '' is not a name"),
        ("local: [{id: 7, slots: {VCPU: 1}}]", "id must be text, not 7: put it in quotes"),
        ("local: [{id: a, slots: {VCPU: 1}, host: h9}]", "host 'h9' is not one that this agent speaks for"),
        ("local: [{id: a, slots: {VCPU: 1}}, {id: a, slots: {VCPU: 1}}]", "entry 2: 'a' is given twice"),
        ("local: [{id: a, slots: {VCPU: 1}, project: 'x y'}]", "project 'x y' is not a name"),
    ],
)
def test_what_cannot_be_is_reported_with_its_entry(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "local.yaml").write_text(text)
    with pytest.raises(InvalidRequest, match=r"REDSCHED_LOCAL .*local\.yaml: ") as error:
        LocalFile(tmp_path / "local.yaml", ["h1"])
    assert said in str(error.value)


def test_work_is_named_as_a_hook_would_name_it_and_put_on_its_host(tmp_path: Path) -> None:
    (tmp_path / "local.yaml").write_text(
        "local:\n- {id: a, slots: {VCPU: 1}, host: h1, cgroup: a.slice}\n- {id: a, slots: {VCPU: 2}, host: h2}\n"
    )
    file = LocalFile(tmp_path / "local.yaml", ["h1", "h2"])
    (first,), (second,) = file.of("h1"), file.of("h2")
    assert first.named is not None
    assert (first.named.cgroup, second.named, second.amounts) == ("a.slice", None, {"VCPU": 2})
    assert file.of("h3") == ()


async def test_the_journal_has_it(tmp_path: Path, world: World) -> None:
    agent = await world.start(local=write(world, CONSOLE))
    await world.reaches("console", ClaimStatus.ACTIVE)
    await world.stop(agent)
    journal = open_journal(world.folder / "journal.sqlite")
    (held,) = journal.pages["h1"].held.values()
    assert (held.id, held.is_local, held.state, held.amounts) == ("console", True, ClaimStatus.ACTIVE, {"VCPU": 2})
    await journal.close()
