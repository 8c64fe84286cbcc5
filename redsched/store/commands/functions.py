"""FunctionCommands: which library of functions each primary has, and installing that of this release."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from redis.exceptions import NoPermissionError, ResponseError

from redsched.errors import Conflict, StoreUnavailable
from redsched.store.client.function_library import NAME, Library, library, version_of
from redsched.store.codec.wire import mapping_of
from redsched.store.topology.connection import reading
from redsched.store.topology.router import ONLY, Router, Send
from redsched.store.topology.url import without_password

_VERSION = re.compile(r"redsched functions, version (\d+)\b")
_ABSENT = re.compile(r"Function not found|no matching function", re.IGNORECASE)
"""How servers word it that there is no function of a name."""
MAY_INSTALL = "+function|list +function|load"
"""The permissions that installing needs."""


class Installation(StrEnum):
    """What installing did on one primary."""

    INSTALLED = "installed"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class PrimaryFunctions:
    """The library on a primary. `version`: None if it has none, or one that redsched has not made.

    `lines`: what rs_help says.
    """

    primary: str
    version: int | None
    lines: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Installed:
    """What installing did on a primary that had version `before`."""

    primary: str
    done: Installation
    before: int | None


class FunctionCommands:
    """The functions of a store. They belong to its servers, not to a cell."""

    def __init__(self, url: str, router: Router) -> None:
        self._url = url
        self._router = router

    async def show(self) -> list[PrimaryFunctions]:
        """Return which library each primary has. Readers of the store may call it."""
        with reading(self._url):
            return [await _shown(name, send) for name, send in (await self._primaries()).items()]

    async def install(self, *, force: bool = False) -> list[Installed]:
        """Install the library of this release on each primary that has an older one or none; return what was done.

        With `force`, replace any other library too. Raises Conflict, before anything is installed, if a primary has a
        newer version or a library that is not redsched's; and StoreUnavailable if the user may not install.
        """
        wanted = library()
        with reading(self._url):
            try:
                primaries = await self._primaries()
                present = {name: await _text(send) for name, send in primaries.items()}
                if not force:
                    for name, text in present.items():
                        self._check(name, text, wanted)
                return [await _install(name, send, present[name], wanted) for name, send in primaries.items()]
            except NoPermissionError as error:
                raise StoreUnavailable(
                    f"the user of the store at {without_password(self._url)} may not install functions: {error}; "
                    f"use the login of an administrator, who has {MAY_INSTALL}"
                ) from error

    async def _primaries(self) -> dict[str, Send]:
        found = await self._router.primaries()
        return {"the store" if name == ONLY else name: send for name, send in found.items()}

    def _check(self, primary: str, text: str, wanted: Library) -> None:
        """Raise Conflict if the library of a primary must not be replaced by that of this release."""
        if not text or text == wanted.text:
            return
        version = version_of(text)
        if version is None:
            raise Conflict(f"{primary} has a library {NAME!r} that redsched has not made: --force replaces it")
        if version > wanted.version:
            raise Conflict(
                f"{primary} has version {version} of the functions, this release {wanted.version}: nothing was "
                "installed; --force replaces it"
            )
        if version == wanted.version:
            raise Conflict(f"{primary} has version {version} of the functions, but other code: --force replaces it")


async def _shown(primary: str, send: Send) -> PrimaryFunctions:
    try:
        lines = await send("FCALL_RO", "rs_help", 0)
    except ResponseError as error:
        if not _ABSENT.search(str(error)):
            raise
        return PrimaryFunctions(primary, None)
    found = _VERSION.match(lines[0]) if lines else None
    return PrimaryFunctions(primary, int(found[1]) if found else None, tuple(lines))


async def _text(send: Send) -> str:
    """Return the text of the library on a primary; '' if it has none."""
    replies: list[Any] = await send("FUNCTION", "LIST", "LIBRARYNAME", NAME, "WITHCODE")
    return mapping_of(replies[0])["library_code"] if replies else ""


async def _install(primary: str, send: Send, text: str, wanted: Library) -> Installed:
    before = version_of(text)
    if text == wanted.text:
        return Installed(primary, Installation.UNCHANGED, before)
    await send("FUNCTION", "LOAD", "REPLACE", wanted.text)
    return Installed(primary, Installation.REPLACED if text else Installation.INSTALLED, before)
