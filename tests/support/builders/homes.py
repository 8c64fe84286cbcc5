"""A host's name in two cells, as a race of two stores' shards or an earlier release may leave it."""

from redsched.model import HostReport
from redsched.store.cell import CellStore


async def open_twin(first: CellStore, second: CellStore, report: HostReport) -> None:
    """Open a host for claims in the second cell too. Its name stays bound to the first one."""
    await second.homes.bind(report.name, former=first.name)
    said = await second.hosts.report(report)
    await second.hosts.attest(report.name, said.epoch)
    await first.homes.bind(report.name, former=second.name)
