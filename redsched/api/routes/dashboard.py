"""GET / and its files: the dashboard. They hold nothing of the fleet, so they need no token.

The page reads the API with the token of whoever looks at it. Its Content-Security-Policy allows scripts and requests of
this origin only, and with trusted types no script can turn text into HTML.
"""

import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from redsched.api.problems import NoRoute
from redsched.requests.parsing import shown_text

router = APIRouter(include_in_schema=False)

FILES = files("redsched") / "api" / "dashboard"
PAGE = "index.html"
TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
HEADERS = {
    "Cache-Control": "no-cache",  # asks each time, so that page and scripts are of one release
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@router.get("/")
async def get_dashboard(request: Request) -> Response:
    """Return the page of the dashboard."""
    return _file(request, PAGE)


@router.get("/assets/{name}")
async def get_asset(request: Request, name: str) -> Response:
    """Return a file of the dashboard."""
    if name not in _contents():
        raise NoRoute(f"the dashboard has no file {shown_text(name)!r}: open / instead")
    return _file(request, name)


def _file(request: Request, name: str) -> Response:
    content, tag = _contents()[name]
    headers = {**HEADERS, "ETag": tag}
    known = request.headers.get("if-none-match", "")
    if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers={**headers, "Content-Type": TYPES[name.rpartition(".")[2]]})


@cache
def _contents() -> dict[str, tuple[bytes, str]]:
    """Return the content and the ETag of each file, by name."""
    found = {one.name: one.read_bytes() for one in FILES.iterdir() if one.name.rpartition(".")[2] in TYPES}
    return {name: (content, f'"{hashlib.sha256(content).hexdigest()[:32]}"') for name, content in found.items()}
