"""The dashboard in Chromium at 10,000 hosts."""

import asyncio
from pathlib import Path
from random import Random

import httpx

from redsched.model import HostReport, Inventory
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.api.parts import worker_over
from tests.support.browser import browser, shows
from tests.support.chromium import need_browser

MANY = 10_000


async def fill(url: str) -> None:
    """Put 10,000 hosts into the store, in four zones."""
    rng = Random(1)
    async with Store.connect(url, Settings(redis_url=url)) as store:
        cell = store.cell("c1")

        async def put(number: int) -> None:
            name, external = f"h{number:05}", {"VCPU": rng.randint(0, 64), "MEMORY_MB": rng.randint(0, 262_144)}
            inventories = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262_144)}
            report = HostReport(name, inventories, zone=f"az{number % 4}", external=external, lease_s=86_400)
            await cell.hosts.attest(name, (await cell.hosts.report(report)).epoch)

        for first in range(0, MANY, 200):
            await asyncio.gather(*(put(number) for number in range(first, first + 200)))


def test_ten_thousand_hosts_are_legible_and_live(server: PrivateServer, tmp_path: Path) -> None:
    need_browser()
    with worker_over(server) as url, browser() as page:
        asyncio.run(fill(server.url))
        page.open(f"{url}/")
        shows(page, "10,000 hosts")
        page.wait_for("document.querySelector('#live').dataset.state === 'live'", 60)
        maps = "return [...document.querySelectorAll('canvas')].map((one) => [one.clientWidth, one.clientHeight])"
        sizes = page.run(maps)
        assert len(sizes) == 4
        # At least 6 by 6 pixels for each host, and all zones within 700 pixels.
        assert all(width * height >= 2500 * 36 for width, height in sizes)
        assert sum(height for _, height in sizes) < 700
        colours = """
            const {data} = document.querySelector('canvas').getContext('2d').getImageData(0, 0, 900, 100);
            return new Set(new Uint32Array(data.buffer)).size
        """
        assert page.run(colours) >= 6
        asked = {"resources": {"VCPU": 1}, "hosts": ["h00007"], "lease_s": 3600, "claim_ids": ["one"]}
        httpx.post(f"{url}/v1/selections", json=asked).raise_for_status()
        shows(page, "; 1 claim.")
        page.save_screenshot(tmp_path / "fleet.png")
        assert (tmp_path / "fleet.png").stat().st_size > 10_000
        page.run("location.hash = '#/capacity?by=zone'")
        shows(page, "Amounts by zone and class", "az3", "160,000")
        page.run("location.hash = '#/status'")
        shows(page, "10,000: 10,000 up")
        page.run("location.hash = '#/plans?host=h00007'")
        page.wait_for("document.querySelector('main form button.main')")
        page.click("main form button.main")
        shows(page, "claim", selector="#drain")
