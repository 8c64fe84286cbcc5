"""A headless Chromium, driven through chromedriver: WebDriver is HTTP and JSON, so it needs no library."""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.chromium import need_browser
from tests.support.waiting import wait_until_sync

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of an element's id in WebDriver (W3C WebDriver, 12.2)."""
ENTER, TAB, RIGHT, DOWN = "\ue007", "\ue004", "\ue014", "\ue015"
"""Keys (W3C WebDriver, 17.4.2)."""


class Browser:
    """One window. Methods take CSS selectors, and fail with what WebDriver answers."""

    def __init__(self, session: httpx.Client) -> None:
        self._session = session

    def open(self, url: str) -> None:
        """Load a page."""
        self._ask("POST", "/url", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what the body of a function returns in the page."""
        return self._ask("POST", "/execute/sync", script=script, args=arguments)

    def wait_for(self, expression: str, timeout: float = 30.0) -> Any:
        """Return the value of an expression once it is true."""
        found: list[Any] = []

        def is_true() -> bool:
            found[:] = [self.run(f"return {expression}")]
            return bool(found[0])

        try:
            wait_until_sync(is_true, timeout, expression)
        except AssertionError as error:
            raise AssertionError(f"{error}; the page shows: {self.text('body')}; its log: {self.log()}") from None
        return found[0]

    def text(self, selector: str) -> str:
        """Return the visible text of an element."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        self._ask("POST", f"/element/{self._element(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        """Replace the value of a field."""
        element = self._element(selector)
        self._ask("POST", f"/element/{element}/clear")
        self._ask("POST", f"/element/{element}/value", text=text)

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions", actions=[{"type": "key", "id": "keyboard", "actions": steps}])

    def devtools(self, command: str, **parameters: Any) -> Any:
        """Return the result of a command of the DevTools protocol."""
        return self._ask("POST", "/goog/cdp/execute", cmd=command, params=parameters)

    def log(self) -> list[str]:
        """Return what the console got since the last call: errors of scripts, and what the page may not do."""
        return [str(one["message"]) for one in self._ask("POST", "/se/log", type="browser")]

    def save_screenshot(self, path: Path) -> None:
        """Write what the window shows as a PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def _element(self, selector: str) -> str:
        return str(self._ask("POST", "/element", using="css selector", value=selector)[ELEMENT])

    def _ask(self, method: str, path: str, **body: Any) -> Any:
        answer = self._session.request(method, path, json=body or {})
        value = answer.json()["value"]
        assert answer.is_success, value["message"]
        return value


def shows(page: Browser, *texts: str, selector: str = "main") -> None:
    """Wait until an element shows each of these texts."""
    for text in texts:
        page.wait_for(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)})")


@contextmanager
def browser(width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """Yield a window of a new browser with a profile of its own."""
    chromium, driver = need_browser()
    with _driver(driver) as url, httpx.Client(base_url=url, timeout=60) as client:
        made = client.post("/session", json={"capabilities": {"alwaysMatch": _capabilities(chromium, width, height)}})
        assert made.is_success, made.text
        session = f"{url}/session/{made.json()['value']['sessionId']}"
        client.base_url = httpx.URL(session)
        try:
            yield Browser(client)
        finally:
            # By its whole URL: httpx appends a slash to a base URL, and the driver knows no such path.
            ended = client.delete(session)
            assert ended.is_success, ended.text


def _capabilities(chromium: str, width: int, height: int) -> dict[str, Any]:
    flags = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium has none for root, and the pages are our own
    return {
        "browserName": "chrome",
        "goog:chromeOptions": {"binary": chromium, "args": [*flags, f"--window-size={width},{height}"]},
        "goog:loggingPrefs": {"browser": "ALL"},
    }


@contextmanager
def _driver(path: str) -> Iterator[str]:
    """Yield the URL of a chromedriver on a free port."""
    with subprocess.Popen([path, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            [port] = next(found for line in lines if (found := re.findall(r"successfully on port (\d+)", line.strip())))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
