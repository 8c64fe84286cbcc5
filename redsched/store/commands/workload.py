"""The workload of a cell: counting what requests ask for, and reading the sums."""

from collections.abc import Iterable, Mapping

from redsched.model.workload import WHOLE_GPU, ScarceDemand, Workload
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient

STEP = 200
"""The sums change when this many more requests have been counted."""
MOST = 20_000
"""The sums are halved when they are of more requests than this."""

SHARE, PLACES, BESIDE = "share.", "places.", "beside."
"""Fields of the sums: `share.<thousandths>`, `places.<scarce class>`, `beside.<scarce class>.<class>`."""


class WorkloadCommands:
    """Counts requests, and returns the sums over all schedulers."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def read(self) -> Workload:
        """Return the sums."""
        with self._cell.reading():
            return parsed((await self._cell.reader.hgetall(self._cell.keys.workload)).items())

    async def add(self, requests: int, counted: Workload) -> Workload:
        """Count requests, and what they asked for in whole numbers. Return the sums. (workload.lua)

        A call that is repeated after a lost reply counts twice, which the sums can bear.
        """
        counts = flat(fields_of(counted))
        reply = await self._cell.run("workload", (self._cell.keys.workload,), (STEP, MOST, requests, *counts))
        texts = [str(one) for one in reply[3:]]
        return parsed(zip(texts[::2], texts[1::2], strict=True))


def fields_of(counted: Workload) -> Mapping[str, int]:
    """Return the fields of counts."""
    fields = {f"{SHARE}{share}": count for share, count in counted.shares.items()}
    for scarce, asked in counted.scarce.items():
        fields[f"{PLACES}{scarce}"] = asked.places
        fields |= {f"{BESIDE}{scarce}.{name}": amount for name, amount in asked.amounts.items()}
    return {field: int(count) for field, count in fields.items()}


def parsed(fields: Iterable[tuple[str, str]]) -> Workload:
    """Return the workload in the fields of its hash. Fields that are no valid sums are left out."""
    valid = {field: float(text) for field, text in fields if text.isdecimal()}
    shares = {
        int(share): count
        for share, count in _after(SHARE, valid).items()
        if share.isdecimal() and 0 < int(share) <= WHOLE_GPU
    }
    scarce = _after(PLACES, valid).items()
    return Workload(shares, {name: ScarceDemand(places, _after(f"{BESIDE}{name}.", valid)) for name, places in scarce})


def _after(prefix: str, sums: Mapping[str, float]) -> dict[str, float]:
    return {field.removeprefix(prefix): sum_ for field, sum_ in sums.items() if field.startswith(prefix)}
