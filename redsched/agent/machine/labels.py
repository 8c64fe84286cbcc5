"""The labels of this machine, for requests to select by: names, kernel, architecture, CPU and NUMA nodes."""

import os
import platform
import socket
from pathlib import Path

import psutil

from redsched.agent.machine.cpu_traits import CPUINFO
from redsched.model.validation import MAX_LABEL_LENGTH

NODES = Path("/sys/devices/system/node")
PRODUCT = Path("/sys/class/dmi/id/product_name")


def machine_labels() -> dict[str, str]:
    """Return the labels of this machine; values that cannot be read are omitted."""
    labels = {
        "hostname": socket.gethostname(),
        "kernel": platform.release(),
        "arch": platform.machine(),
        "os": _os_name(),
        "cpu.model": _cpu_model(),
        "cpu.cores": str(psutil.cpu_count(logical=False) or ""),
        "numa.nodes": str(len(list(NODES.glob("node[0-9]*"))) or ""),
        "product": _first_line(PRODUCT),
    }
    return {key: _label_value(value) for key, value in labels.items() if value}


def _label_value(text: str) -> str:
    printable = "".join(char if " " <= char <= "~" else "?" for char in text)
    return printable[:MAX_LABEL_LENGTH].strip()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return os.uname().sysname


def _cpu_model() -> str:
    try:
        lines = CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _first_line(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip().partition("\n")[0]
    except OSError:
        return ""
