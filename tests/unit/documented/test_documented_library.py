"""docs/library.md: its example of a gang runs, and all names that it mentions can be imported from redsched."""

import re
from ast import literal_eval
from pathlib import Path
from typing import Any

import redsched
from redsched import HostReport, Inventory, Pool, Scheduler

TEXT = (Path(__file__).parents[3] / "docs" / "library.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_every_class_that_is_named_is_exported() -> None:
    named = {name for line in TEXT.splitlines() if line.startswith("| ") for name in re.findall(r"`(\w+)`", line)}
    assert named
    assert named <= set(dir(redsched))


async def test_the_example_of_a_gang_places_it(clean_store: str, capsys: Any) -> None:
    """It places three databases, at most two per zone, and a member with half a GPU, all on different hosts."""
    spaces: dict[str, Any] = {}
    exec(compile(EXAMPLES[1], "docs/library.md", "exec"), spaces)
    gpu = {"gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, traits=frozenset({"CUSTOM_GPU_T4"}))}
    async with Scheduler.connect(clean_store) as scheduler:
        await scheduler.init()
        for number in range(4):
            pools = gpu if number == 3 else {}
            zone = "ab"[number % 2]
            await scheduler.hosts.report(
                HostReport(f"h{number}", {"VCPU": Inventory(8)}, zone=zone, lease_s=3600, pools=pools)
            )
        await spaces["shop"](scheduler)
    shown = [line.split(" ", 2) for line in capsys.readouterr().out.splitlines()]
    assert [member for member, _, _ in shown] == ["db", "db", "db", "search"]
    assert {host for _, host, _ in shown} == {"h0", "h1", "h2", "h3"}
    assert (shown[3][1], literal_eval(shown[3][2])) == ("h3", {"VCPU": 4, "gpu0/CUSTOM_GPU_MILLI": 500})
