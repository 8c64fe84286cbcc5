"""The files of the dashboard: open to all, allowed to do little, and without anything of the fleet."""

import re
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from redsched.api.routes.dashboard import FILES, TYPES
from tests.api.access.parts import Callers, callers as callers_over, settle, token_file
from tests.api.parts import check_problem

FOLDER = Path(str(FILES))
NAMES = sorted(file.name for file in FOLDER.iterdir())
SCRIPTS = [name for name in NAMES if name.endswith(".js")]
SVG = "http://www.w3.org/2000/svg"
"""The name of the elements of images, from which nothing is loaded."""


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return token_file(tmp_path_factory.mktemp("tokens"))


@pytest.fixture
async def callers(clean_store: str, tokens: Path) -> AsyncIterator[Callers]:
    """Yield the callers of an API with authentication."""
    async with callers_over(clean_store, tokens) as found:
        yield found


@pytest.mark.parametrize("name", NAMES)
async def test_each_file_is_served_with_its_type(api: httpx.AsyncClient, name: str) -> None:
    answer = await api.get(f"/assets/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == TYPES[name.rpartition(".")[2]]
    assert answer.content == (FOLDER / name).read_bytes()


async def test_the_page_may_load_and_ask_its_own_origin_only(api: httpx.AsyncClient) -> None:
    answer = await api.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(one.strip().partition(" ")[::2] for one in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert not {"script-src", "style-src", "connect-src"} & policy.keys()
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_page_has_no_inline_script_or_style_and_names_no_other_place() -> None:
    """It works offline, and what it loads exists."""
    page = (FOLDER / "index.html").read_text()
    assert re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=", page) == []
    loaded = re.findall(r'(?:src|href)="(/[^"]*)"', page)
    imported = [one for name in SCRIPTS for one in re.findall(r'from "([^"]*)"', (FOLDER / name).read_text())]
    assert {path.removeprefix("/assets/") for path in (*loaded, *imported)} == set(NAMES) - {"index.html"}
    for name in set(NAMES) - {"icon.svg"}:
        text = (FOLDER / name).read_text().replace(SVG, "")
        assert re.findall(r"(?:https?:)?//[a-z]+\.", text) == [], name


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_make_no_html_of_text(name: str) -> None:
    """What the API returns may hold anything: labels and reasons are free text."""
    forbidden = r"(?:inner|outer)HTML|AdjacentHTML|document\.write|\beval\b|new Function|srcdoc|ContextualFragment"
    assert re.findall(forbidden, (FOLDER / name).read_text()) == []


async def test_an_unchanged_file_is_not_sent_again(api: httpx.AsyncClient) -> None:
    first = await api.get("/assets/app.js")
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = await api.get("/assets/app.js", headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert "content-security-policy" in again.headers
    assert (await api.get("/assets/app.js", headers={"if-none-match": '"other"'})).status_code == 200
    assert (await api.get("/", headers={"if-none-match": tag})).status_code == 200


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fapp.py", "%2e%2e", "__init__.py", "app.js%00"])
async def test_nothing_else_is_served(api: httpx.AsyncClient, name: str) -> None:
    answer = await api.get(f"/assets/{name}")
    assert answer.status_code in (404, 422)


async def test_the_dashboard_needs_no_token_and_shows_nothing_of_the_fleet(callers: Callers) -> None:
    await settle(callers)
    for path in ("/", *(f"/assets/{name}" for name in NAMES)):
        for who in ("no token", "forged", "operator"):
            answer = await callers.send(who, "GET", path)
            assert answer.status_code == 200, (who, path)
            assert "web-1" not in answer.text
    assert (await callers.send("no token", "GET", "/assets")).status_code == 401


@pytest.mark.parametrize(
    ("who", "role"),
    [("no token", None), ("forged", None), ("web", "tenant"), ("of-h1", "agent"), ("reader", "reader")],
)
async def test_a_caller_learns_its_own_role(callers: Callers, who: str, role: str | None) -> None:
    assert (await callers.send(who, "GET", "/v1")).json()["role"] == role


async def test_without_authentication_everybody_is_an_operator(api: httpx.AsyncClient) -> None:
    assert (await api.get("/v1")).json()["role"] == "operator"


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


async def test_a_link_on_another_site_opens_the_page_and_nothing_else(api: httpx.AsyncClient) -> None:
    assert (await api.get("/", headers=LINK)).status_code == 200
    for path in ("/v1/hosts", "/assets/app.js", "/docs"):
        check_problem(await api.get(path, headers=LINK), 403, "forbidden")
    for changed in ({"sec-fetch-dest": "iframe"}, {"sec-fetch-mode": "no-cors"}, {"host": "evil.example"}):
        check_problem(await api.get("/", headers={**LINK, **changed}), 403, "forbidden")


def test_the_package_has_the_files() -> None:
    """`pip install` brings the dashboard."""
    package = Path(__file__).parents[3] / "redsched"
    patterns = tomllib.loads((package.parent / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    packed = {file for pattern in patterns["redsched"] for file in package.glob(pattern)}
    assert {FOLDER / name for name in NAMES} <= packed
