"""The hosts of a world: their agents, their cells, and what each holds."""

from collections.abc import Sequence

from tests.faults.suite.plan import HOSTS_OF_AGENT, children
from tests.faults.suite.processes import agent_process

CAPACITIES = {
    "VCPU": agent_process.VCPU,
    "MEMORY_MB": agent_process.MEMORY_MB,
    **{f"gpu{number}/CUSTOM_GPU_MILLI": agent_process.GPU_MILLI for number in range(agent_process.GPUS)},
}
"""The capacity of a host; hosts without GPUs have that much less."""


def hosts_of(agent: str) -> list[str]:
    """Return the names of an agent's hosts."""
    return [f"{agent}-host-{number}" for number in range(HOSTS_OF_AGENT)]


def agent_of(host: str) -> str:
    """Return the agent that speaks for a host."""
    return host.rpartition("-host-")[0]


def cell_of(agent: str, cells: Sequence[str]) -> str:
    """Return the cell of an agent's hosts.

    The last cell has more of them, because a request that fits in several cells equally well goes to the first.
    """
    return cells[-1 - children("agent").index(agent) % len(cells)]


def hosts_in(cell: str, cells: Sequence[str]) -> list[str]:
    """Return the hosts of a cell."""
    return [host for agent in children("agent") if cell_of(agent, cells) == cell for host in hosts_of(agent)]
