"""The workload of a cell: counting what requests ask for, and reading the sums."""

from collections.abc import Iterable, Mapping

from redsched.model.workload import WHOLE_GPU, Workload
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient

STEP = 200
"""The sums change when this many more requests have been counted."""
MOST = 20_000
"""The sums are halved when they are of more requests than this."""

SHARE, BESIDE = "share.", "beside."


class WorkloadCommands:
    """Counts requests, and returns the sums over all schedulers."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def read(self) -> Workload:
        """Return the sums."""
        with self._cell.reading():
            return parsed((await self._cell.reader.hgetall(self._cell.keys.workload)).items())

    async def add(self, requests: int, shares: Mapping[int, int], beside: Mapping[str, int]) -> Workload:
        """Count requests: the GPUs that they ask for by share, and their other amounts. Return the sums. (workload.lua)

        A call that is repeated after a lost reply counts twice, which the sums can bear.
        """
        counts = {f"{SHARE}{share}": count for share, count in shares.items()}
        counts |= {f"{BESIDE}{name}": amount for name, amount in beside.items()}
        reply = await self._cell.run("workload", (self._cell.keys.workload,), (STEP, MOST, requests, *flat(counts)))
        texts = [str(one) for one in reply[3:]]
        return parsed(zip(texts[::2], texts[1::2], strict=True))


def parsed(fields: Iterable[tuple[str, str]]) -> Workload:
    """Return the workload in the fields of its hash. Fields that are no valid sums are left out."""
    valid = {field: float(text) for field, text in fields if text.isdecimal()}
    shares = {
        int(share): count
        for field, count in valid.items()
        if (share := field.removeprefix(SHARE)) != field and share.isdecimal() and 0 < int(share) <= WHOLE_GPU
    }
    beside = {name: sum_ for field, sum_ in valid.items() if (name := field.removeprefix(BESIDE)) != field}
    return Workload(shares, beside)
