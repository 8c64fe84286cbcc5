"""The benchmark of rebalancing measures what it claims, on a small fleet."""

from benchmarks.openb import CPU, MEMORY, Node, Task
from benchmarks.packing import Run
from benchmarks.rebalance import copied, filled, large_request, rebalance
from redsched.operate.plans.questions import CapacityQuestion
from redsched.settings import Settings

NODES = [Node(name, {CPU: 96_000, MEMORY: 400_000}, 8, "T4") for name in "abcd"]
WHOLE = Task("whole", {CPU: 8_000, MEMORY: 8_000}, (1000,) * 8, ())
TASKS = [Task(f"t{number}", {CPU: 2_000, MEMORY: 2_000}, (500,), ()) for number in range(30)] + [WHOLE]


def test_moves_let_larger_tasks_in() -> None:
    run = Run("spread", 3, Settings(pick_from=1))
    found = rebalance(NODES, TASKS, run, 0.7, 20)
    assert (found.before, found.after > found.before, 0 < found.moves <= 20) == (0, True, True)
    assert found.tasks == len(filled(NODES, TASKS, run, 0.7))


def test_the_copy_has_what_was_placed() -> None:
    run = Run("gpu", 3, Settings(pick_from=1))
    held = filled(NODES, TASKS, run, 0.5)
    copy = copied(NODES, held, run)
    assert {one.host for one in copy.claims.values()} == {where.host for _, where in held.values()}
    room = CapacityQuestion(large_request(TASKS, "gpu"))(copy)
    assert room.classes[1].resource_class == "CUSTOM_GPU_MILLI"
    assert room.classes[1].capacity - room.classes[1].free == sum(
        amount for _, where in held.values() for slot, amount in where.amounts.items() if slot.startswith("gpu")
    )
