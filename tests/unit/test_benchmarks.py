"""The replay of a trace: its lists mean the right fleet and requests, and its checks find what is broken."""

import json
from typing import Any

import pytest

from benchmarks.openb import CPU, GPU, MEMORY, Node, Task, fleet_text, read_nodes, read_tasks
from benchmarks.replay import Asked
from benchmarks.trace_checks import false_refusals, shortened, still_fitting, unanswered, wrong_claims, wrong_sums
from redsched.agent.fleet import parse_fleet
from redsched.api.models.asked import SelectionRequest

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


def asked(task: Task, status: int, began: int, ended: int, host: str = "") -> Asked:
    return Asked(task, began, ended, status, 0.001, host, tries=1)


def hosts(claimed: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """The three nodes as GET /v1/hosts shows them, with so much claimed."""
    shown = []
    for node in nodes():
        slots = {}
        for slot, amount in node.amounts.items():
            taken = claimed.get(node.name, {}).get(slot, 0)
            slots[slot] = {"capacity": amount, "claimed": taken, "free": amount - taken}
        shown.append({"name": node.name, "traits": sorted(node.traits), "slots": slots})
    return shown


def test_a_fleet_file_says_what_the_node_list_says() -> None:
    """Whole GPUs, a trait for their model, and no GPU slot where there is none."""
    found = {report.name: report for report in parse_fleet(fleet_text(nodes()))}
    assert {slot: one.total for slot, one in found["big"].inventories.items()} == {CPU: 64000, MEMORY: 262144, GPU: 2}
    assert found["big"].traits == {"CUSTOM_GPU_MODEL_P100"}
    assert found["mixed"].traits == {"CUSTOM_GPU_MODEL_V100_M32"}
    assert set(found["plain"].inventories) == {CPU, MEMORY}
    assert found["plain"].traits == frozenset()


def test_a_share_of_a_gpu_takes_a_whole_one() -> None:
    assert tasks()["share"].amounts == {CPU: 6000, MEMORY: 12288, GPU: 1}


def test_what_a_task_does_not_need_is_not_asked_for() -> None:
    assert tasks()["tiny"].amounts == {CPU: 1000}


@pytest.mark.parametrize("policy", ["", "pack"])
def test_every_task_is_a_request_that_the_api_takes(policy: str) -> None:
    """The task's name is its claim id, and gpu_spec says of which models it needs one."""
    for task in tasks().values():
        request = SelectionRequest.model_validate_json(task.body(policy)).request()
        assert (dict(request.resources), request.claim_ids) == (dict(task.amounts), (task.name,))
        assert request.policy == policy
    spec = json.loads(tasks()["picky"].body())["any_of"]
    assert spec == [["CUSTOM_GPU_MODEL_P100", "CUSTOM_GPU_MODEL_V100_M32"]]


def test_answers_and_store_must_name_the_same_claims() -> None:
    """A claim lost, one that nobody was answered, and one on another host are three faults."""
    share = asked(tasks()["share"], 201, 1, 2, "big")
    stored = {"claim_id": "share", "host": "big", "slots": dict(share.task.amounts)}
    assert wrong_claims({"share": share}, [stored]) == []
    assert wrong_claims({"share": share}, []) == ["share was answered and is not in the store"]
    assert wrong_claims({}, [stored]) == ["share is in the store and was not answered"]
    assert len(wrong_claims({"share": share}, [stored | {"host": "mixed"}])) == 1


def test_sums_must_be_those_of_what_was_placed() -> None:
    share = asked(tasks()["share"], 201, 1, 2, "big")
    right = {"big": dict(share.task.amounts)}
    assert wrong_sums({"share": share}, hosts(right)) == []
    assert wrong_sums({}, hosts(right)) != []
    assert wrong_sums({"share": share}, hosts({})) != []
    over = asked(Task("over", {GPU: 3}, ()), 201, 1, 2, "big")
    assert wrong_sums({"over": over}, hosts({"big": {GPU: 3}})) == [f"big {GPU}: 3 of 2 claimed, placed 3"]


def test_a_refusal_is_false_while_a_host_has_room() -> None:
    """Every amount and the model must fit on one host."""
    picky = tasks()["picky"]
    assert still_fitting([picky], hosts({})) == ["picky was refused, and big has room for it"]
    assert still_fitting([picky], hosts({"big": {GPU: 1}, "mixed": {GPU: 7}})) == []
    elsewhere = Task("elsewhere", {GPU: 1}, ("T4",))
    assert still_fitting([elsewhere], hosts({})) == []


def test_a_refusal_is_judged_by_what_was_taken_when_it_came() -> None:
    """What was asked before the refusal came counts as taken; what was asked later does not."""
    fleet = nodes()[:1]
    both, one = Task("both", {GPU: 2}, ()), Task("one", {GPU: 1}, ())
    refused = asked(one, 409, 2, 4)
    assert false_refusals(fleet, {}, [asked(both, 201, 3, 5, "big"), refused]) == []
    late = asked(both, 201, 5, 6, "big")
    assert false_refusals(fleet, {}, [late, refused]) == ["one was refused while big had room for it"]
    assert false_refusals(fleet, {"both": asked(both, 201, 1, 1, "big")}, [refused]) == []


def test_a_task_without_an_answer_is_lost() -> None:
    share = tasks()["share"]
    assert unanswered([asked(share, 201, 1, 2), asked(share, 409, 1, 2), asked(share, 200, 1, 2)]) == []
    assert unanswered([asked(share, 503, 1, 2)]) == ["share has no answer (last status 503)"]


def test_many_problems_are_shortened_and_counted() -> None:
    assert shortened(["a"]) == ["a"]
    assert shortened([str(number) for number in range(9)])[-1] == "... and 4 more of that kind"
