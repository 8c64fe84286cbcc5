"""The replay of a trace: its files produce the right fleet and requests, and its checks find errors."""

from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.openb import CPU, MEMORY, SHARES, Node, Task, fleet_text, read_nodes, read_tasks
from benchmarks.replay import Asked
from benchmarks.trace_checks import (
    false_refusals,
    gpu_shares,
    shortened,
    still_fitting,
    unanswered,
    wrong_claims,
    wrong_slots,
    wrong_sums,
)
from redsched.agent.collectors.fleet import parse_fleet
from redsched.model import Request
from redsched.requests.parsing import parse

NODES = """sn,cpu_milli,memory_mib,gpu,model
big,64000,262144,2,P100
plain,32000,131072,0,
mixed,96000,786432,8,V100-M32
"""
TASKS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
share,6000,12288,1,460,,LS,Running,0,9,0
picky,4000,8192,2,1000,P100|V100-M32,LS,Running,0,9,0
tiny,1000,0,0,0,,BE,Running,0,9,0
"""


def nodes() -> list[Node]:
    return read_nodes(NODES.splitlines())


def tasks() -> dict[str, Task]:
    return {task.name: task for task in read_tasks(TASKS.splitlines())}


def asked(task: Task, status: int, began: int, ended: int, host: str = "", gpus: Sequence[int] = ()) -> Asked:
    """Return the record of a task's request; if it was placed, on these GPUs of the host."""
    slots = dict(task.amounts) | {gpu(number): share for number, share in zip(gpus, task.shares, strict=False)}
    return Asked(task, began, ended, status, 0.001, host, slots, tries=1)


def gpu(number: int) -> str:
    return f"gpu{number}/{SHARES}"


def hosts(claimed: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """Return the three nodes as in GET /v1/hosts, with these amounts claimed."""
    shown = []
    for node in nodes():
        slots = {}
        for slot, amount in node.slots().items():
            taken = claimed.get(node.name, {}).get(slot, 0)
            slots[slot] = {"capacity": amount, "claimed": taken, "free": amount - taken}
        shown.append({"name": node.name, "traits": sorted(node.traits), "slots": slots})
    return shown


def test_a_fleet_file_says_what_the_node_list_says() -> None:
    """Each GPU is a pool of a thousand shares; pool and host have its model as a trait. Other hosts have neither."""
    found = {report.name: report for report in parse_fleet(fleet_text(nodes()))}
    assert {slot: one.total for slot, one in found["big"].inventories.items()} == {CPU: 64000, MEMORY: 262144}
    assert found["big"].traits == {"CUSTOM_GPU_MODEL_P100"}
    assert {name: pool.inventories[SHARES].total for name, pool in found["big"].pools.items()} == {
        "gpu0": 1000,
        "gpu1": 1000,
    }
    assert found["mixed"].pools["gpu7"].traits == found["mixed"].traits == {"CUSTOM_GPU_MODEL_V100_M32"}
    assert (found["plain"].pools, found["plain"].traits) == ({}, frozenset())


def test_a_fleet_file_has_the_slots_that_are_checked() -> None:
    found = {report.name: report.slots() for report in parse_fleet(fleet_text(nodes()))}
    assert {name: {slot: one.total for slot, one in slots.items()} for name, slots in found.items()} == {
        node.name: node.slots() for node in nodes()
    }


def test_a_task_takes_its_share_of_one_gpu_or_whole_ones() -> None:
    assert (tasks()["share"].amounts, tasks()["share"].shares) == ({CPU: 6000, MEMORY: 12288}, (460,))
    assert tasks()["picky"].shares == (1000, 1000)


def test_what_a_task_does_not_need_is_not_asked_for() -> None:
    assert (tasks()["tiny"].amounts, tasks()["tiny"].shares) == ({CPU: 1000}, ())


@pytest.mark.parametrize("policy", ["", "pack"])
def test_the_api_takes_every_task_as_the_request_that_is_decided_in_process(policy: str) -> None:
    for task in tasks().values():
        sent = parse(task.body(policy), Request)
        assert (sent.digest(), sent.claim_ids) == (task.request(policy).digest(), (task.name,))


def test_of_one_model_each_gpu_must_be_and_of_several_the_host() -> None:
    picky, one = tasks()["picky"].request(), Task("one", {CPU: 1}, (500,), ("T4",)).request()
    assert picky.any_of == (frozenset({"CUSTOM_GPU_MODEL_P100", "CUSTOM_GPU_MODEL_V100_M32"}),)
    assert [group.required for group in picky.groups] == [frozenset(), frozenset()]
    assert picky.group_policy == "isolate"
    assert [group.required for group in one.groups] == [frozenset({"CUSTOM_GPU_MODEL_T4"})]
    assert one.any_of == ()


def test_answers_must_be_what_was_asked_of_gpus_that_are_there() -> None:
    """Errors: a share on no GPU or split over two, two GPUs' shares on one, or a GPU that the host does not have."""
    share, picky = tasks()["share"], tasks()["picky"]
    assert wrong_slots(nodes(), [asked(share, 201, 1, 2, "big", [1]), asked(picky, 201, 1, 2, "big", [0, 1])]) == []
    assert len(wrong_slots(nodes(), [asked(share, 201, 1, 2, "big")])) == 1
    assert len(wrong_slots(nodes(), [asked(picky, 201, 1, 2, "big", [0])])) == 1
    assert len(wrong_slots(nodes(), [asked(share, 201, 1, 2, "big", [2])])) == 1
    halves = asked(share, 201, 1, 2, "big")
    halves.slots |= {gpu(0): 230, gpu(1): 230}
    assert len(wrong_slots(nodes(), [halves])) == 1


def test_answers_and_store_must_name_the_same_claims() -> None:
    """Errors: a claim is missing, was never answered, or is on another host or another GPU than answered."""
    share = asked(tasks()["share"], 201, 1, 2, "big", [1])
    stored = {"claim_id": "share", "host": "big", "slots": dict(share.slots)}
    assert wrong_claims({"share": share}, [stored]) == []
    assert wrong_claims({"share": share}, []) == ["share was answered and is not in the store"]
    assert wrong_claims({}, [stored]) == ["share is in the store and was not answered"]
    assert len(wrong_claims({"share": share}, [stored | {"host": "mixed"}])) == 1
    elsewhere = asked(tasks()["share"], 201, 1, 2, "big", [0])
    assert len(wrong_claims({"share": share}, [stored | {"slots": elsewhere.slots}])) == 1


def test_sums_must_be_those_of_what_was_placed() -> None:
    share = asked(tasks()["share"], 201, 1, 2, "big", [1])
    right = {"big": dict(share.slots)}
    assert wrong_sums(nodes(), {"share": share}, hosts(right)) == []
    assert wrong_sums(nodes(), {}, hosts(right)) != []
    assert wrong_sums(nodes(), {"share": share}, hosts({})) != []


def test_no_gpu_may_be_over_a_thousand() -> None:
    """This is an error even if the claimed amounts equal the placed ones, and the host as a whole has room."""
    twice = {name: asked(Task(name, {}, (600,), ()), 201, 1, 2, "big", [0]) for name in ("a", "b")}
    assert wrong_sums(nodes(), twice, hosts({"big": {gpu(0): 1200}})) == [
        f"big {gpu(0)}: 1200 of 1000 claimed, placed 1200"
    ]


def test_shares_are_added_up_over_all_gpus() -> None:
    assert gpu_shares(hosts({"big": {gpu(0): 460}, "mixed": {gpu(7): 1000}})) == (1460, 10_000)


def test_a_refusal_is_false_while_a_host_has_room() -> None:
    """All amounts, the model and the number of GPUs must fit on one host; free shares of several GPUs do not add up."""
    picky, share = tasks()["picky"], tasks()["share"]
    assert still_fitting([picky], hosts({})) == ["picky was refused, and big has room for it"]
    left_of_one = {gpu(number): 1 for number in range(7)}
    assert still_fitting([picky], hosts({"big": {gpu(0): 1}, "mixed": left_of_one})) == []
    assert still_fitting([Task("elsewhere", {}, (1,), ("T4",))], hosts({})) == []
    all_of_eight = {gpu(number): 541 for number in range(8)}
    nearly = {"big": {gpu(0): 541, gpu(1): 541}, "mixed": all_of_eight}
    assert still_fitting([share], hosts(nearly)) == []
    nearly["big"][gpu(1)] = 540
    assert still_fitting([share], hosts(nearly)) == ["share was refused, and big has room for it"]


def test_a_refusal_is_judged_by_what_was_taken_when_it_came() -> None:
    """Requests that were sent before the refusal arrived count as placed; later ones do not."""
    fleet = nodes()[:1]
    both, one = Task("both", {}, (1000, 1000), ()), Task("one", {}, (300,), ())
    refused = asked(one, 409, 2, 4)
    assert false_refusals(fleet, {}, [asked(both, 201, 3, 5, "big", [0, 1]), refused]) == []
    late = asked(both, 201, 5, 6, "big", [0, 1])
    assert false_refusals(fleet, {}, [late, refused]) == ["one was refused while big had room for it"]
    assert false_refusals(fleet, {"both": asked(both, 201, 1, 1, "big", [0, 1])}, [refused]) == []


def test_a_task_without_an_answer_is_lost() -> None:
    share = tasks()["share"]
    assert unanswered([asked(share, 201, 1, 2), asked(share, 409, 1, 2), asked(share, 200, 1, 2)]) == []
    assert unanswered([asked(share, 503, 1, 2)]) == ["share has no answer (last status 503)"]


def test_many_problems_are_shortened_and_counted() -> None:
    assert shortened(["a"]) == ["a"]
    assert shortened([str(number) for number in range(9)])[-1] == "... and 4 more of that kind"
