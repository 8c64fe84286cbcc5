"""NVIDIA GPUs, reported by a stand-in for the driver's binding."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from redsched.agent.machine.gpu_pools import gpu_pools, trait_of
from redsched.agent.machine.nvidia import Gpu, Gpus, load_nvml
from redsched.model import Inventory, Pool
from redsched.model.validation import check_trait
from tests.support.fleets.nvml import GIB, StandInGpu, StandInNvml
from tests.support.fleets.sys_tree import SysTree

MIB = 2**20


def test_the_driver_is_asked_for_each_gpu() -> None:
    second = StandInGpu(
        b"NVIDIA A100-SXM4-40GB", b"00000001:AF:00.0", 40 * GIB, 93, {7: 3 * GIB, 8: None}, uuid=b"GPU-86f37a43"
    )
    gpus = Gpus(StandInNvml([StandInGpu(), second]).module)
    assert gpus.read() == [
        Gpu(0, "Tesla T4", "0000:3b:00.0", "GPU-5fd4f087", 16 * GIB, {}, 7),
        Gpu(1, "NVIDIA A100-SXM4-40GB", "0001:af:00.0", "GPU-86f37a43", 40 * GIB, {7: 3 * GIB, 8: 0}, 93),
    ]


def test_a_gpu_without_uuid_is_known_by_its_address() -> None:
    assert [gpu.device for gpu in Gpus(StandInNvml([StandInGpu(uuid="")]).module).read()] == ["0000:3b:00.0"]


def test_a_gpu_whose_uuid_cannot_be_read_now_is_left_out() -> None:
    """By its address it would be another device, and be given out beside the claims that it has."""
    assert Gpus(StandInNvml([StandInGpu(failing={"uuid"})]).module).read() == []


def test_without_the_binding_there_are_no_gpus() -> None:
    with capture_logs() as logs:
        assert Gpus(None).read() == []
    assert logs == [], "that is normal"


def test_a_driver_that_fails_is_logged_once_and_asked_again() -> None:
    nvml = StandInNvml([StandInGpu()], broken="Driver Not Loaded")
    gpus = Gpus(nvml.module)
    with capture_logs() as logs:
        assert [gpus.read(), gpus.read(), gpus.read()] == [[], [], []]
    assert [line["reason"] for line in logs] == ["the driver does not answer: Driver Not Loaded"]
    nvml.broken = ""
    assert [gpu.number for gpu in gpus.read()] == [0]
    assert [gpu.number for gpu in gpus.read()] == [0]
    assert nvml.opened == 1
    nvml.broken = "GPU is lost"
    with capture_logs() as logs:
        assert gpus.read() == []
    assert [line["reason"] for line in logs] == ["the driver does not answer: GPU is lost"]
    nvml.broken = ""
    assert [gpu.number for gpu in gpus.read()] == [0]
    assert (nvml.opened, nvml.closed) == (2, 1), "opened anew, and closed in between"


def test_one_gpu_that_fails_leaves_the_others_under_their_numbers() -> None:
    nvml = StandInNvml([StandInGpu(), StandInGpu(failing={"handle"}), StandInGpu()])
    gpus = Gpus(nvml.module)
    with capture_logs() as logs:
        assert [gpu.number for gpu in gpus.read()] == [0, 2]
        assert [gpu.number for gpu in gpus.read()] == [0, 2]
    assert [line["reason"] for line in logs] == ["GPU 1 does not answer: handle: not supported"]


def test_what_a_gpu_cannot_tell_is_left_out() -> None:
    (gpu,) = Gpus(StandInNvml([StandInGpu(failing={"memory", "percent", "processes"})]).module).read()
    assert (gpu.memory_bytes, gpu.percent, gpu.processes) == (0, None, None)
    part = gpu_pools([gpu], {}, ())
    assert part.pools["gpu0"].inventories == {"CUSTOM_GPU_MILLI": Inventory(1000)}
    assert (part.unexplained, part.trusted, part.metrics) == ({}, frozenset(), {})


def test_a_gpu_is_a_pool_in_the_numa_node_of_its_device(tmp_path: Path) -> None:
    tree = SysTree(tmp_path)
    tree.device("0000:3b:00.0", "10de", "1eb8", numa=1)
    gpus = [
        Gpu(0, "Tesla T4", "0000:3b:00.0", "GPU-a", 16 * GIB, {}, 7),
        Gpu(1, "Tesla T4", "0000:5e:00.0", "GPU-b", 16 * GIB, {}, None),
    ]
    part = gpu_pools(gpus, {}, {"numa0", "numa1"}, tmp_path)
    has = {"CUSTOM_GPU_MILLI": Inventory(1000), "CUSTOM_GPU_MEMORY_MB": Inventory(16384)}
    trait = frozenset({"CUSTOM_GPU_T4"})
    assert part.pools == {"gpu0": Pool(has, "numa1", trait, "GPU-a"), "gpu1": Pool(has, "", trait, "GPU-b")}
    assert part.metrics == {"gpu0.percent": 7.0}
    assert gpu_pools(gpus, {}, (), tmp_path).pools["gpu0"].parent == "", "NUMA pools are off"


@pytest.mark.parametrize(
    ("processes", "shares", "memory_mb"),
    [
        ({}, 0, 0),
        ({7: 4 * GIB}, 0, 0),  # a claim's own process
        ({7: 4 * GIB, 9: 4 * GIB}, 250, 4096),
        ({9: 1}, 1, 1),
        ({9: 0}, 1, 0),  # the driver does not report its memory
        ({8: 10 * GIB, 9: 10 * GIB}, 1000, 20480),  # of claims that hold another GPU
    ],
)
def test_what_other_processes_hold_is_external(processes: dict[int, int], shares: int, memory_mb: int) -> None:
    claimed = {"GPU-a": {7}, "GPU-b": {8, 9}}
    part = gpu_pools([Gpu(0, "T4", "0000:3b:00.0", "GPU-a", 16 * GIB, processes)], claimed, ())
    assert part.unexplained == {"gpu0/CUSTOM_GPU_MILLI": shares, "gpu0/CUSTOM_GPU_MEMORY_MB": memory_mb}
    assert part.trusted == part.unexplained.keys()


def test_nothing_is_external_while_nobody_can_tell_whose_work_is_whose() -> None:
    part = gpu_pools([Gpu(0, "T4", "0000:3b:00.0", "GPU-a", 16 * GIB, {9: GIB})], None, ())
    assert (part.unexplained, part.trusted) == ({}, frozenset())


@pytest.mark.parametrize(
    ("model", "trait"),
    [
        ("Tesla T4", "CUSTOM_GPU_T4"),
        ("NVIDIA A100-SXM4-40GB", "CUSTOM_GPU_A100_SXM4_40GB"),
        ("NVIDIA GeForce RTX 4090", "CUSTOM_GPU_GEFORCE_RTX_4090"),
        ("NVIDIA RTX 6000 Ada Generation", "CUSTOM_GPU_RTX_6000_ADA_GENERATION"),
        ("", "CUSTOM_GPU"),
        ("X" * 90, "CUSTOM_GPU_" + "X" * 53),
        ("é\x00 H100", "CUSTOM_GPU_H100"),
    ],
)
def test_a_model_becomes_a_trait(model: str, trait: str) -> None:
    assert check_trait(trait_of(model)) == trait


def test_the_binding_itself_answers_where_it_is_installed() -> None:
    """With a driver it finds GPUs, without one it finds none."""
    assert all(gpu.memory_bytes >= 0 for gpu in Gpus(load_nvml()).read())
