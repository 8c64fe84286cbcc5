"""The benchmarks of deciding measure what they claim: small runs, and the errors that they detect."""

import json
from dataclasses import asdict
from random import Random

import pytest

from benchmarks.constraint_cases import CASES, Case
from benchmarks.constraints import Loop, Ours, agree, run
from benchmarks.fleet_of_pools import WIDE, make_cell, make_counts, make_fleet, make_plain
from benchmarks.openb import CPU, MEMORY, Node, Task, read_tasks
from benchmarks.packing import Run, churn, fill, gpu_milli, make_columns, sequence, settings_for, trace_of
from benchmarks.plain_constraints import assign, decide, passing, wanted
from benchmarks.plain_gangs import Placed, claim, wrong_places
from benchmarks.stranding import beside, fill as stranding_fill, for_fpgas, with_fpgas
from redsched.model import Request
from redsched.offline.arrivals import Arrival, replayable
from redsched.offline.trace import read_trace
from redsched.requests.parsing import parse
from redsched.settings import Settings

pytestmark = pytest.mark.heavy

HOSTS = 200
FLEET = make_fleet(HOSTS, Random(5))
COUNTS = make_counts(FLEET, Random(6))
NODES = [Node("a", {MEMORY: 100}, 2, "T4"), Node("b", {MEMORY: 100}, 1, "T4")]


def ours() -> Ours:
    return Ours(make_cell(FLEET, COUNTS))


def loop() -> Loop:
    return Loop(make_plain(FLEET, COUNTS))


def case(name: str) -> Case:
    return next(one for one in CASES if name in one.name)


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_every_case_is_decided_alike_by_both(one: Case) -> None:
    agree(one, ours(), loop(), 2)


@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_every_number_makes_another_shape_of_the_same_kind(one: Case) -> None:
    assert len({one.request(number).digest() for number in range(5)}) == 5


def test_a_case_is_measured_three_ways() -> None:
    (row,) = run(HOSTS, 10.0, 2, ["NUMA and PCI near it"])
    assert (row.hosts, row.repeated, row.new_shapes, row.loops) == (HOSTS, 2, 2, 2)
    assert min(row.repeated_us, row.new_shape_us, row.loop_us) > 0


def test_disagreement_is_not_measured() -> None:
    """One of the two fleets has a fitting host that is better than all others."""
    plain = loop()
    best = next(iter(plain.fleet.hosts.values()))
    best.traits, best.is_up = frozenset({"HW_CPU_X86_AVX2"}), True
    best.root = {name: total for name, total in best.capacity.items() if name in best.root}
    best.left = dict(best.capacity)
    with pytest.raises(SystemExit, match="simple: the figures would mean nothing: redsched chose"):
        agree(case("simple"), ours(), plain, 1)


@pytest.mark.parametrize("one", [case for case in CASES if "gang" not in case.name], ids=lambda one: one.name)
def test_a_good_part_of_the_hosts_fails_and_a_good_part_does_not(one: Case) -> None:
    asked = wanted(one.request(0))
    fitting = sum(assign(host, asked) is not None for host in passing(make_plain(FLEET, COUNTS), asked))
    assert HOSTS / 20 < fitting < HOSTS * 9 / 10


def test_claims_count_in_their_group_on_both_sides() -> None:
    """The next decision counts them: with a spread over zones it chooses another zone."""
    request, mine, plain = case("spread").request(0), ours(), loop()
    before = dict(plain.fleet.counts[WIDE]["zone"])
    agree(case("spread"), mine, plain, 3)
    counts = plain.fleet.counts[WIDE]["zone"]
    assert sum(counts.values()) == sum(before.values()) + 3
    assert max(counts.values()) - min(counts.values()) <= 1
    assert mine.decide(request)[0].host == decide(plain.fleet, request)[0][0]


def test_places_that_break_what_was_asked_are_found() -> None:
    """Errors: wrong amounts, too few places, more than is free, one host for members apart, two zones for same-zone."""
    plain, request = make_plain(FLEET, COUNTS), case("gang of 3").request(0)
    places = ours().decide(request)
    assert wrong_places(plain, request, places) == []
    assert wrong_places(plain, request, places[:2]) == ["placed 2 of 3"]
    db, web, train = places
    near = Placed(db.host, web.amounts, "web")
    assert f"web is on {db.host} beside what it must be apart from" in wrong_places(plain, request, [db, near, train])
    less = Placed(web.host, {"VCPU": 2}, "web")
    assert len(wrong_places(plain, request, [db, less, train])) == 1
    far = next(name for name, host in plain.hosts.items() if host.zone != plain.hosts[db.host].zone)
    assert "db, web, train lie in 2 zones" in wrong_places(plain, request, [db, Placed(far, web.amounts, "web"), train])
    full = Request({"VCPU": plain.hosts[db.host].root["VCPU"]})
    claim(plain, Placed(db.host, full.resources))
    assert any("left of VCPU" in one for one in wrong_places(plain, request, places))


def test_the_published_protocol_asks_for_130_percent() -> None:
    """Every task of the list comes once, in an order given by the seed, then random ones until it is enough."""
    tasks = [Task(f"t{number}", {MEMORY: 1}, (500,), ()) for number in range(4)]
    asked = sequence(tasks, 3000, 42)
    assert {task.name for task in asked[:4]} == {task.name for task in tasks}
    assert sum(sum(task.shares) for task in asked) == 4000
    assert asked == sequence(tasks, 3000, 42) != sequence(tasks, 3000, 43)


def test_packing_tells_what_is_allocated_at_the_end() -> None:
    """Shares that fit on no single GPU are refused, although the host has as many left in total."""
    tasks = [Task(f"t{number}", {MEMORY: 10}, (600,), ()) for number in range(7)]
    packed = fill(NODES, tasks, Run("pack", 42, Settings(pick_from=1)))
    assert (packed.asked, packed.placed, packed.percent) == (7, 3, 60.0)
    assert packed.refused_by == {"group:gpu0": 4}
    read = asdict(packed)  # programs outside of this project read these names, with --json
    assert (read["gpu_milli"], read["of_gpu_milli"], read["percent"]) == (1800, 3000, 60.0)


def test_requests_that_race_take_other_candidates() -> None:
    tasks = [Task(f"t{number}", {MEMORY: 10}, (600,), ()) for number in range(7)]
    packed = fill(NODES, tasks, Run("pack", 42, Settings(pick_from=1), schedulers=4))
    assert (packed.placed, packed.refused_by) == (3, {"group:gpu0": 4})


def test_a_churn_keeps_as_much_requested_and_measures_after_the_warm_up() -> None:
    """Tasks that take a whole fleet of their own come and go: one of the places is always in use."""
    nodes, tasks = [Node("a", {MEMORY: 100}, 8, "T4")], [Task("t", {MEMORY: 1}, (1000,) * 8, ())]
    churned = churn(nodes, tasks, Run("gpu", 1, Settings(pick_from=1)))
    # 130 % of 8 GPUs are two tasks, of which one is placed; three sequences of two steps follow.
    assert (churned.asked, churned.large) == (6, 6)
    assert churned.large_placed == churned.placed
    assert 0 < churned.percent <= 100


def test_a_learning_run_starts_from_the_default_settings() -> None:
    tasks = [Task("t", {MEMORY: 100, CPU: 3000}, (300, 300), ())]
    assert settings_for(tasks, 1, learns=True).gpu_shares == Settings().gpu_shares
    known = settings_for(tasks, 1, learns=False)
    assert known.gpu_shares == {300: 2.0}
    assert known.gpu_beside == {CPU: 5000.0, MEMORY: pytest.approx(100 / 0.6)}


def test_a_sequence_is_written_as_a_trace() -> None:
    tasks = [Task(f"t{number}", {MEMORY: 10}, (600,), ()) for number in range(7)]
    trace = read_trace(trace_of(NODES, tasks, 42), lambda body: parse(json.dumps(body).encode(), Request))
    assert trace.fleet.hosts == tuple(node.report() for node in NODES)
    assert [one.at_s for one in trace.arrivals] == list(range(7))
    assert trace.arrivals[0] == Arrival(0, replayable(tasks[0].request()))


def test_devices_instead_of_gpus_are_lost_beside_what_others_take() -> None:
    """`pack` puts tasks for CPUs alone on the smaller host, which has the devices."""
    nodes = [Node("a", {CPU: 4000, MEMORY: 100}, 2, "T4"), Node("b", {CPU: 5000, MEMORY: 100}, 0, "")]
    tasks = [Task(f"cpu{n}", {CPU: 1000}, (), ()) for n in range(3)]
    tasks += [Task(f"gpu{n}", {CPU: 2000}, (500,), ("T4",)) for n in range(3)]
    assert with_fpgas(nodes[0]).slots() == {CPU: 4000, MEMORY: 100, "FPGA": 2}
    assert for_fpgas(tasks[-1]) == Task("gpu2", {CPU: 2000, "FPGA": 1}, (), ())
    assert beside(tasks) == {CPU: 2000.0}
    lost, kept = (stranding_fill(nodes, tasks, "pack", 3, multiplier, "list") for multiplier in (0.0, 10.0))
    assert (lost.asked, kept.asked) == (6, 6)
    assert lost.percent < kept.percent == 100.0


def test_lists_without_models_of_gpus_are_read() -> None:
    lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli", "t,100,10,1,500"]
    assert read_tasks(lines) == [Task("t", {CPU: 100, MEMORY: 10}, (500,), ())]


def test_packing_starts_with_an_empty_fleet() -> None:
    assert gpu_milli(make_columns(NODES)) == (0, 3000)
