"""A fake binding of NVIDIA's management library: any number of GPUs, with failures on demand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any, cast

GIB = 2**30


class NVMLError(Exception):
    """The error that the binding raises."""


class NotSupported(NVMLError):
    """The error that it raises for what a GPU does not have."""


@dataclass
class StandInGpu:
    """The driver's data of one GPU. `failing` names the queries that raise an error. It may have no `uuid`."""

    name: str | bytes = "Tesla T4"
    bus_id: str | bytes = "00000000:3B:00.0"
    memory_bytes: int = 16 * GIB
    percent: int = 7
    processes: dict[int, int | None] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    uuid: str | bytes = "GPU-5fd4f087"


@dataclass
class StandInNvml:
    """The functions that the agent calls, under their names. If the driver is `broken`, all of them fail."""

    gpus: list[StandInGpu] = field(default_factory=list)
    broken: str = ""
    opened: int = 0
    closed: int = 0
    NVMLError: type[Exception] = NVMLError
    NVMLError_NotSupported: type[Exception] = NotSupported
    _counted: Sequence[StandInGpu] = ()
    """The GPUs when they were last counted: tests change them while the agent reads in another thread."""

    @property
    def module(self) -> ModuleType:
        return cast(ModuleType, self)

    def nvmlInit(self) -> None:  # noqa: N802 - the binding's names
        self._check()
        self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.closed += 1
        self._check()

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._check()
        self._counted = tuple(self.gpus)
        return len(self._counted)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> StandInGpu:  # noqa: N802
        return self._asked(self._counted[index], "handle")

    def nvmlDeviceGetName(self, handle: StandInGpu) -> str | bytes:  # noqa: N802
        return handle.name

    def nvmlDeviceGetPciInfo(self, handle: StandInGpu) -> Any:  # noqa: N802
        return SimpleNamespace(busId=handle.bus_id)

    def nvmlDeviceGetUUID(self, handle: StandInGpu) -> str | bytes:  # noqa: N802
        if not self._asked(handle, "uuid").uuid:
            raise NotSupported("uuid: not supported")
        return handle.uuid

    def nvmlDeviceGetMemoryInfo(self, handle: StandInGpu) -> Any:  # noqa: N802
        return SimpleNamespace(total=self._asked(handle, "memory").memory_bytes)

    def nvmlDeviceGetUtilizationRates(self, handle: StandInGpu) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=self._asked(handle, "percent").percent)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: StandInGpu) -> list[Any]:  # noqa: N802
        held = self._asked(handle, "processes").processes
        return [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in held.items()]

    def _check(self) -> None:
        if self.broken:
            raise NVMLError(self.broken)

    def _asked(self, gpu: StandInGpu, question: str) -> StandInGpu:
        if question in gpu.failing:
            raise NVMLError(f"{question}: not supported")
        return gpu
