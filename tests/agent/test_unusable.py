"""The agent's log says of what nothing can ever be claimed, once."""

from dataclasses import replace

from structlog.testing import capture_logs

from redsched.model import Inventory
from tests.agent.conftest import H1, World


async def test_an_agent_logs_what_can_never_be_claimed_of_its_host(world: World) -> None:
    wrong = replace(H1, inventories={"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096, reserved=65536)})
    with capture_logs() as logs:
        await world.start([wrong])
    found = [(one["host"], one["inventories"]) for one in logs if one["event"] == "nothing of this can ever be claimed"]
    assert found == [("h1", "MEMORY_MB: reserved 65536 is above total 4096")]
