"""Read the NVIDIA GPUs of this machine from the driver's management library (NVML).

Its Python binding is the optional `nvidia-ml-py` (the extra `nvidia`). Without it, without a driver, or
with a driver that fails, there are no GPUs.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from redsched import logs

T = TypeVar("T")
_log = logs.get_logger("redsched.agent")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver reports it now; `number` is the driver's index, as nvidia-smi shows it.

    The number moves when a GPU before it falls off the bus. `device` does not: it is the GPU's UUID, or the address of
    a GPU that has none. `address` is that of its PCI device, as sysfs writes it. `processes` maps the pids that compute
    on it to the bytes that they hold there. `memory_bytes` is 0, and `processes` and `percent` are None, if the driver
    does not know.
    """

    number: int
    model: str
    address: str
    device: str
    memory_bytes: int
    processes: Mapping[int, int] | None = None
    percent: int | None = None


class Gpus:
    """The driver's GPUs. `nvml` is the binding's module, None if it is not installed."""

    def __init__(self, nvml: ModuleType | None) -> None:
        self._nvml: Any = nvml
        self._is_open = False
        self._failure = ""

    @property
    def is_installed(self) -> bool:
        """Whether the binding is installed, so that GPUs of the driver are offered in shares."""
        return self._nvml is not None

    def read(self) -> list[Gpu]:
        """Return the GPUs that respond. A failure is logged if it differs from the last one."""
        if self._nvml is None:
            return []
        try:
            if not self._is_open:
                self._nvml.nvmlInit()
                self._is_open = True
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError as error:
            self._fail(f"the driver does not answer: {error}")
            self._close()
            return []
        return list(self._read_each(count))

    def _close(self) -> None:
        """Close NVML, so that the next read opens it again: the driver may be reloaded, in another version."""
        if self._is_open:
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        self._is_open = False

    def _read_each(self, count: int) -> Iterator[Gpu]:
        for number in range(count):
            try:
                yield self._read(number)
            except self._nvml.NVMLError as error:
                # The GPU may have fallen off the bus, for example. The other GPUs are not affected.
                self._fail(f"GPU {number} does not answer: {error}")

    def _read(self, number: int) -> Gpu:
        handle = self._nvml.nvmlDeviceGetHandleByIndex(number)
        address = _address(_text(self._nvml.nvmlDeviceGetPciInfo(handle).busId))
        return Gpu(
            number=number,
            model=_text(self._nvml.nvmlDeviceGetName(handle)),
            address=address,
            device=self._uuid(handle) or address,
            memory_bytes=self._ask(lambda: self._nvml.nvmlDeviceGetMemoryInfo(handle).total, otherwise=0),
            processes=self._ask(lambda: self._processes(handle), otherwise=None),
            percent=self._ask(lambda: int(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu), otherwise=None),
        )

    def _uuid(self, handle: Any) -> str:
        """Return the UUID of a GPU; '' if GPUs of its kind have none. Any other failure is one of the GPU.

        If it got its address instead, it would be another device until the driver knows its UUID again.
        """
        try:
            return _text(self._nvml.nvmlDeviceGetUUID(handle))
        except self._nvml.NVMLError_NotSupported:
            return ""

    def _processes(self, handle: Any) -> Mapping[int, int] | None:
        running = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        return {process.pid: process.usedGpuMemory or 0 for process in running}

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        """Return a value that not every GPU reports, or `otherwise`.

        A GPU that is split into instances has no utilisation; one without its own memory has no size.
        """
        try:
            return question()
        except self._nvml.NVMLError:
            return otherwise

    def _fail(self, failure: str) -> None:
        if failure != self._failure:
            _log.warning("GPUs are left out", reason=failure)
        self._failure = failure


def load_nvml() -> ModuleType | None:
    """Return the binding's module, None when it is not installed."""
    try:
        return import_module("pynvml")
    except ImportError:
        return None


def _address(bus_id: str) -> str:
    """Return the sysfs form (0000:3b:00.0) of the driver's address (00000000:3B:00.0)."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _text(value: str | bytes) -> str:
    """Return text as str: older bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else value
