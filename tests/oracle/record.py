"""Run the cases through Nova and Placement, and write their verdicts to `recorded/`.

Needs an environment with Nova and Placement beside redsched's requirements for tests:

    python -m venv /tmp/nova && /tmp/nova/bin/pip install nova==34.0.0 openstack-placement==16.0.0
    /tmp/nova/bin/python -m tests.oracle.record
"""

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.oracle import nova_side, placement_side
from tests.oracle.cases.candidates import worlds
from tests.oracle.cases.filters import blocks
from tests.oracle.cases.weighers import fleets

RECORDED = Path(__file__).parent / "recorded"


def filters() -> dict[str, Any]:
    """Return every block with its verdicts, under Nova's version."""
    found = [asdict(block) | {"verdicts": nova_side.filter_verdicts(block)} for block in blocks()]
    return {"nova": nova_side.start(), "blocks": found}


def weighers() -> dict[str, Any]:
    """Return every fleet with its weights, under Nova's version."""
    version = nova_side.start()
    return {"nova": version, "fleets": [asdict(fleet) | {"weights": nova_side.weights(fleet)} for fleet in fleets()]}


def candidates() -> dict[str, Any]:
    """Return every world with its candidates, under Placement's version."""
    with TemporaryDirectory() as folder:
        placement = placement_side.Placement(folder)
        found = [asdict(world) | {"candidates": placement_side.candidates(placement, world)} for world in worlds()]
    return {"placement": version("openstack-placement"), "worlds": found}


RECORDS: dict[str, Callable[[], dict[str, Any]]] = {"filters": filters, "weighers": weighers, "candidates": candidates}


def text_of(record: dict[str, Any]) -> str:
    """Return a record as JSON with one line for each item of its lists, so that changes are seen line by line."""
    lines = []
    for key, value in record.items():
        if isinstance(value, list):
            items = ",\n".join(json.dumps(one, separators=(",", ":"), sort_keys=True) for one in value)
            lines.append(f'"{key}":[\n{items}\n]')
        else:
            lines.append(f'"{key}":{json.dumps(value)}')
    return "{" + ",\n".join(lines) + "}\n"


def quiet() -> None:
    """Silence Nova and Placement, and run anew with fixed hashes: both return what depends on the order of sets."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, sys.orig_argv, os.environ | {"PYTHONHASHSEED": "0"})
    warnings.simplefilter("ignore")
    logging.disable()


def main(names: list[str]) -> None:
    """Record what is named, by default everything."""
    quiet()
    nova_side.start()
    for name in names or RECORDS:
        path = RECORDED / f"{name}.json"
        path.write_text(text_of(RECORDS[name]()))
        print(f"{path}: {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
