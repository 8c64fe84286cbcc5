"""Exports and traces are replayed: in order, with the ends of work, repeatably, and with the state of the fleet."""

import json
import math
from typing import Any

import pytest

from redsched.cache.columns import Columns
from redsched.decide.filters import FILTERS
from redsched.errors import InvalidRequest
from redsched.model import GangMember, Group, Hints, HostReport, Inventory, Request
from redsched.offline.arrivals import Arrival, arrivals_of, replayable, weighed_by
from redsched.offline.fleet_meter import FleetMeter, classes_of
from redsched.offline.replay import Replayed, Sample, replay
from redsched.offline.trace import Trace, is_trace, read_trace
from redsched.requests.parsing import parse
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from tests.support.builders.cells import raw_client
from tests.support.builders.columns import columns_of

HEAD = {"kind": "trace", "format": 1}


def host(name: str, **amounts: int) -> dict[str, Any]:
    return {"kind": "host", "name": name, "inventories": {one: {"total": total} for one, total in amounts.items()}}


def arrival(at_s: float, for_s: float | None = None, **request: Any) -> dict[str, Any]:
    timed = {"kind": "arrival", "at_s": at_s, "request": {"resources": {"VCPU": 1}} | request}
    return timed if for_s is None else timed | {"for_s": for_s}


def lines(*items: object) -> list[str]:
    return [json.dumps(one) for one in items]


def request_of(body: dict[str, Any]) -> Request:
    return parse(json.dumps(body).encode(), Request)


def read(*items: object) -> Trace:
    return read_trace(lines(*items), request_of)


async def played(trace: Trace, policy: str = "", **settings: Any) -> Replayed:
    with PrivateServer.start() as server:
        return await replay(server.url, trace.fleet, trace.arrivals, Settings(**settings), policy)


async def test_claims_of_an_export_are_placed_again_by_their_requests(clean_store: str) -> None:
    """The `pack` policy puts the four small claims on one host, `spread` on three; none is refused."""
    async with Scheduler.connect(clean_store, Settings(events_keep_s=0, check_s=0, pick_from=1)) as scheduler:
        await scheduler.init()
        for name in ("h1", "h2", "h3"):
            await scheduler.hosts.report(HostReport(name, {"VCPU": Inventory(4)}, lease_s=3600))
        # A replay is not played in real time: a second that the work may run would end it at any moment of it.
        await scheduler.select(Request({"VCPU": 1}, count=2, max_runtime_s=1))
        for _ in range(2):
            await scheduler.select(Request({"VCPU": 1}, labels={}))
        archive = await scheduler.export()
    arrivals = arrivals_of(archive)
    # Calls for the same in one millisecond are one arrival.
    assert sum(one.request.count for one in arrivals) == 4
    assert not any(one.request.max_runtime_s or one.is_guess or one.for_s for one in arrivals)
    assert [one.at_s for one in arrivals] == sorted(one.at_s for one in arrivals)
    assert arrivals[0].at_s == 0
    told = [await played(Trace(archive, tuple(arrivals)), policy) for policy in ("pack", "spread")]
    assert [(one.placed, one.refused, one.hosts, one.guessed) for one in told] == [(4, 0, 1, 0), (4, 0, 3, 0)]
    assert [one.fill["VCPU"] for one in (told[0].samples[0], told[0].samples[-1])] == [2 / 12, 4 / 12]


async def test_claims_whose_request_is_unknown_are_guessed_from_their_amounts(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, Settings(events_keep_s=0, check_s=0)) as scheduler:
        await scheduler.init()
        await scheduler.hosts.report(HostReport("h1", {"VCPU": Inventory(4)}, lease_s=3600))
        await scheduler.select(Request({"VCPU": 1}, count=2, project="web"))
        archive = await scheduler.export()
    object.__setattr__(archive, "requests", {})
    guesses = arrivals_of(archive)
    assert [(dict(one.request.resources), one.request.project, one.is_guess) for one in guesses] == [
        ({"VCPU": 1}, "web", True)
    ] * 2
    assert (await played(Trace(archive, tuple(guesses)))).guessed == 2


async def test_work_of_a_trace_ends_and_makes_room() -> None:
    trace = read(
        HEAD,
        arrival(100, resources={"VCPU": 4}),  # fits, because the one before ends at that moment
        host("h1", VCPU=4),
        arrival(0, 100, resources={"VCPU": 4}),
        arrival(50, resources={"VCPU": 1}),  # refused
        arrival(150, resources={"VCPU": 1}),  # refused
    )
    assert [one.at_s for one in trace.arrivals] == [0, 50, 100, 150]
    found = await played(trace)
    assert (found.placed, found.refused, found.hosts) == (2, 2, 1)
    assert [(one.at_s, one.requested, one.refused) for one in found.samples] == [
        (0, 1, 0),
        (50, 2, 1),
        (100, 3, 1),
        (150, 4, 2),
    ]
    assert found.fill == found.peak == {"VCPU": 1.0}


async def test_whatever_refuses_a_request_only_refuses_its_places() -> None:
    quota = {"kind": "quota", "project": "web", "limits": {"VCPU": 3}}
    trace = read(
        HEAD,
        host("h1", VCPU=8),
        quota,
        arrival(0, project="web", count=2),
        arrival(1, project="web", count=2),  # exceeds the quota
        arrival(2, server_group="db"),  # is not in the trace
        arrival(3, resources={"VCPU": 9}),
    )
    found = await played(trace)
    assert (found.placed, found.refused) == (2, 4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"policy": "best"}, "unknown policy 'best'"),
        ({"weights": {"colour": 1}}, "unknown weigher 'colour'"),
    ],
)
async def test_an_unknown_policy_is_named_by_its_line_before_anything_is_played(
    fields: dict[str, Any], message: str
) -> None:
    trace = read(HEAD, host("h1", VCPU=8), arrival(0), arrival(60, **fields))
    with pytest.raises(InvalidRequest, match=f"^the request of line 4 cannot be placed: {message}"):
        await replay("redis://nowhere.invalid", trace.fleet, trace.arrivals, Settings())
    with pytest.raises(InvalidRequest, match=r"^unknown policy 'good': use one of"):
        await played(trace, "good")
    assert (await played(trace, "pack")).placed == 2


BEST = Request({"VCPU": 1}, policy="best")


@pytest.mark.parametrize("request_", [BEST, Request(members=(GangMember("a", BEST),))])
async def test_an_unknown_policy_of_an_export_is_named_by_its_time(request_: Request) -> None:
    fleet = read(HEAD, host("h1", VCPU=8), arrival(0)).fleet
    with pytest.raises(InvalidRequest, match=r"^the request at 60 s cannot be placed: unknown policy 'best'"):
        await played(Trace(fleet, (Arrival(60, request_),)))


async def test_a_replay_sees_the_room_that_came_free_at_once() -> None:
    """Each task has the better host, where the one before has just ended."""
    many = [arrival(number, 1, resources={"VCPU": 4}) for number in range(60)]
    found = await played(read(HEAD, host("h1", VCPU=4), host("h2", VCPU=5), *many), "pack")
    assert (found.placed, found.refused, found.hosts) == (60, 0, 1)


async def test_replays_are_repeatable_and_have_a_limited_number_of_samples() -> None:
    many = [arrival(number, 3, resources={"VCPU": 2 + number % 3}) for number in range(450)]
    trace = read(HEAD, host("h1", VCPU=6), host("h2", VCPU=4), *many)
    first, again = await played(trace, "pack"), await played(trace, "pack")
    assert first == again
    assert len(first.samples) == 200
    assert first.samples[-1].requested == 450
    assert 0 < first.refused < 450


async def test_a_replay_learns_its_workload_at_the_same_arrivals_each_time() -> None:
    many = [arrival(number, resources={"FPGA": 1, "VCPU": 2}) for number in range(430)]
    trace = read(HEAD, host("h1", VCPU=4, FPGA=4), *many)
    with PrivateServer.start() as server:
        await replay(server.url, trace.fleet, trace.arrivals, Settings(scarce={"FPGA": {"VCPU": 1.0}}))
        async with raw_client(server.url) as raw:
            assert await raw.hgetall("rs:{c1}:workload") == {
                "requests": "400", "places.FPGA": "400", "beside.FPGA.FPGA": "400", "beside.FPGA.VCPU": "800",
            }  # fmt: skip


def test_means_are_over_time() -> None:
    def sample(at_s: float, fill: float) -> Sample:
        return Sample(at_s, 1, 0, {"VCPU": fill}, {"VCPU": 0.0})

    found = Replayed("", 3, 0, 1, 0, (sample(0, 0.1), sample(90, 0.9), sample(100, 0.4)))
    assert found.fill == {"VCPU": pytest.approx(0.1 * 0.9 + 0.9 * 0.1)}
    assert found.peak == {"VCPU": 0.9}
    # All at one time: no sample lasts.
    at_once = Replayed("", 2, 0, 1, 0, (sample(7, 0.1), sample(7, 0.3)))
    assert at_once.fill == {"VCPU": pytest.approx(0.2)}


def readings(columns: Columns, *workload: Request) -> tuple[dict[str, float], dict[str, float]]:
    reading = FleetMeter(workload, FILTERS).read(columns)
    return dict(reading.fill), dict(reading.fragmentation)


def up(**slots: int) -> dict[str, str]:
    found = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
    return found | {f"capacity.{slot.replace('__', '/')}": str(amount) for slot, amount in slots.items()}


def test_what_no_request_can_use_is_fragmented() -> None:
    """Of 20 VCPU, 4 are taken; the 2 on b are too few for a request for 3."""
    columns = columns_of(a=up(VCPU=18) | {"claimed.VCPU": "4"}, b=up(VCPU=2))
    assert readings(columns, Request({"VCPU": 3})) == ({"VCPU": 0.2}, {"VCPU": 0.1})
    assert readings(columns, Request({"VCPU": 1}))[1] == {"VCPU": 0.0}
    assert readings(columns, Request({"VCPU": 16}))[1] == {"VCPU": 0.8}
    # Two of three places ask for more than b has, though by chance of the draw not exactly two thirds.
    mixed = readings(columns, Request({"VCPU": 3}, count=2), Request({"VCPU": 1}))[1]
    assert 0.05 < mixed["VCPU"] < 0.09


def test_a_class_without_what_is_needed_beside_it_is_fragmented() -> None:
    """Parts of two GPUs do not make a whole one, and a whole one is no use without CPUs."""
    gpus = up(VCPU=8, gpu0__CUSTOM_GPU_MILLI=1000, gpu1__CUSTOM_GPU_MILLI=1000)
    halves = {f"claimed.gpu{number}/CUSTOM_GPU_MILLI": "500" for number in range(2)}
    columns = columns_of(halves=gpus | halves, whole=gpus, full=gpus | {"claimed.VCPU": "8"})
    request = Request({"VCPU": 1}, groups=(Group("g", {"CUSTOM_GPU_MILLI": 1000}),))
    fill, fragmentation = readings(columns, request)
    assert fill["CUSTOM_GPU_MILLI"] == pytest.approx(1 / 6)
    assert fragmentation["CUSTOM_GPU_MILLI"] == pytest.approx(3 / 6)
    assert fragmentation["VCPU"] == pytest.approx(8 / 24)


def test_classes_that_no_host_has_are_neither_full_nor_fragmented() -> None:
    gang = Request(members=(GangMember("a", Request({"FPGA": 1})), GangMember("b", Request({"VCPU": 1}, count=3))))
    assert classes_of([gang, Request({"MEMORY_MB": 5})]) == ["FPGA", "MEMORY_MB", "VCPU"]
    assert readings(columns_of(a=up(VCPU=4)), gang) == ({"FPGA": 0.0, "VCPU": 0.0}, {"FPGA": 0.0, "VCPU": 0.0})


def test_a_trace_has_hosts_declared_objects_and_arrivals() -> None:
    aggregate = {"kind": "aggregate", "name": "ssd", "hosts": ["h1"]}
    request = {"resources": {"VCPU": 2}, "count": 3, "claim_ids": ["a", "b", "c"], "until": "active"}
    text = lines(HEAD, host("h1", VCPU=4), aggregate, arrival(1.5, 60, **request), arrival(9, max_runtime_s=30))
    assert is_trace(text[0])
    assert not is_trace('{"kind": "head"}')
    trace = read_trace(text, request_of)
    assert ([one.name for one in trace.fleet.hosts], trace.fleet.aggregates[0].name) == (["h1"], "ssd")
    # Ids and waits are of the call that was made; the time that work may run is when it ends.
    assert trace.arrivals == (
        Arrival(1.5, Request({"VCPU": 2}, count=3, lease_s=3600), 60),
        Arrival(9, Request({"VCPU": 1}, lease_s=3600), 30),
    )


def test_a_request_of_a_trace_is_the_body_of_a_selection() -> None:
    """A gang too, whose members a claim's stored request has in another form."""
    gang = {"members": [{"name": "a", "count": 2, "resources": {"VCPU": 1}}, {"name": "b", "resources": {"FPGA": 1}}]}
    trace = read(HEAD, host("h1", VCPU=4), {"kind": "arrival", "at_s": 0, "request": gang})
    assert trace.arrivals[0].request.places == 3


def test_hints_and_policies_of_members_do_not_survive_either() -> None:
    member = Request({"VCPU": 1}, hints=Hints(different_host=frozenset({"web-1"})), policy="pack", weights={"ram": 1.0})
    gang = Request(members=(GangMember("a", member),), policy="spread")
    plain = replayable(gang).members[0].request
    assert (plain.hints, plain.policy) == (Hints(), "pack")
    weighed = weighed_by(gang, "gpu")
    assert (weighed.policy, weighed.members[0].request.policy, weighed.members[0].request.weights) == ("gpu", "gpu", {})
    assert weighed_by(gang, "") == gang


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([host("h1", VCPU=1)], ["line 1", "the first line"]),
        ([HEAD, HEAD], ["line 2", "the first line"]),
        ([HEAD | {"format": 2}], ["line 1", '"format": 1']),
        ([HEAD, {"kind": "claim"}], ["line 2", "'claim' is not known in a trace"]),
        ([HEAD, arrival(0)], ["at least one host"]),
        ([HEAD, host("h1", VCPU=1)], ["one arrival"]),
        ([HEAD, host("h1", VCPU=1), host("h1", VCPU=1)], ["line 3", "twice"]),
        ([HEAD, host("h1", cpu=1)], ["line 2", "cpu"]),
        *(
            ([HEAD, arrival(0) | {name: value}], ["line 2", f"{name} must be a number of seconds, 0 to 10000000000"])
            for name in ("at_s", "for_s")
            for value in (-1, math.nan, math.inf, -math.inf, 10**400, 10_000_000_001)
        ),
        ([HEAD, {"kind": "arrival", "request": {}}], ["line 2", "at_s", "not None"]),
        ([HEAD, arrival(0, 0)], ["line 2", "for_s must be above 0"]),
        ([HEAD, arrival(0) | {"for_s": "1h"}], ["line 2", "for_s", "'1h'"]),
        ([HEAD, arrival(0) | {"until_s": 5}], ["line 2", "'until_s' is not known"]),
        ([HEAD, {"kind": "arrival", "at_s": 0}], ["line 2", "`request` is missing"]),
        ([HEAD, {"kind": "arrival", "at_s": 0, "request": "VCPU=1"}], ["line 2", "must be an object"]),
        ([HEAD, arrival(0, resources={"cpu": 1})], ["line 2", "cpu"]),
        ([HEAD, arrival(0, colour="red")], ["line 2", "colour"]),
    ],
)
def test_a_trace_that_cannot_be_read_is_refused_by_its_line(items: list[Any], words: list[str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(*items)
    assert all(word in refused.value.detail for word in words), refused.value.detail


@pytest.mark.parametrize(
    ("line", "problem"), [("", "it is empty"), (" ", "it is empty"), ('{"kind":', "it is not JSON")]
)
def test_a_broken_line_of_a_trace_is_refused_without_what_only_an_export_has(line: str, problem: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_trace([json.dumps(HEAD), line], request_of)
    assert refused.value.detail.startswith(f"line 2: {problem}")
    assert refused.value.detail.endswith(": correct or remove the line")
