"""The authenticator: who is identified, who is not, and how it follows its file."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog

from redsched.auth import authenticator as module
from redsched.auth.authenticator import Authenticator
from redsched.auth.oidc.verification import REFUSED
from redsched.auth.watched_file import WatchedTokenFile
from redsched.errors import InvalidRequest, Unauthenticated
from redsched.settings import Settings
from tests.auth.parts import authenticator, document, entry, token, write
from tests.support.waiting import wait_until

CI, WEB = token("ci"), token("web_ci")
TENANT = {"role": "tenant", "projects": ["web"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "tokens.yaml", document(entry(CI), entry(WEB, **TENANT)))


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.01)


@pytest.fixture
def logged() -> Iterator[list[structlog.typing.EventDict]]:
    with structlog.testing.capture_logs() as entries:
        yield entries


@asynccontextmanager
async def watching(auth: Authenticator) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(auth.watch_file(stop))
    yield
    stop.set()
    await task


async def refusal(auth: Authenticator, text: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        await auth.identify(text)
    return caught.value.detail


async def is_known(auth: Authenticator, text: str) -> bool:
    try:
        return bool(await auth.identify(text))
    except Unauthenticated:
        return False


def test_without_the_setting_there_is_no_authentication() -> None:
    assert Authenticator.of(Settings()) is None


def test_a_bad_file_is_an_error_at_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        Authenticator.of(Settings(auth=os.fspath(tmp_path / "none")))


async def test_callers_are_found_by_their_tokens(path: Path) -> None:
    auth = authenticator(path)
    assert (await auth.identify(CI)).id == "ci"
    assert (await auth.identify(WEB)).projects == {"web"}
    assert await auth.identify(WEB) is await auth.identify(WEB)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rst_",
        "rst_ci_",
        token("ci", 2),
        token("nobody"),
        CI[:-1],
        CI + "A",
        f" {CI}",
        CI.upper(),
        CI.replace("rst_ci", "rst_web_ci"),
        WEB.replace("rst_web_ci", "rst_ci"),
        f"{CI}\x00",
        pytest.param("\udcff" * 60, id="bytes"),
        pytest.param("A" * 20_000, id="long"),
        "a.b.c",
    ],
)
async def test_other_texts_are_refused_with_one_reason(path: Path, text: str) -> None:
    """The text must not tell whether an id exists."""
    assert await refusal(authenticator(path), text) == REFUSED


async def test_an_unknown_id_is_compared_as_well(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time must not tell either: as many digests are computed and compared as for a known id."""
    compared: list[int] = []

    def compare_digest(found: bytes, known: bytes) -> bool:
        compared.append(len(known))
        return found == known

    monkeypatch.setattr("hmac.compare_digest", compare_digest)
    auth = authenticator(path)
    for text in (token("ci", 2), token("nobody"), ""):
        await refusal(auth, text)
    assert compared == [32, 32, 32]


async def test_an_expired_token_is_told_so_only_with_its_secret(path: Path) -> None:
    write(path, document(entry(CI, expires="2020-01-01T00:00:00Z")))
    auth = authenticator(path)
    assert "'ci' has expired" in await refusal(auth, CI)
    assert await refusal(auth, token("ci", 2)) == REFUSED


async def test_a_caller_expires_while_it_is_connected(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, document(entry(CI, expires="2100-01-01T00:00:00Z")))
    auth = authenticator(path)
    caller = await auth.identify(CI)
    assert auth.still_valid(caller)
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 1e10)
    assert not auth.still_valid(caller)
    assert "expired" in await refusal(auth, CI)


async def test_changes_of_the_file_are_followed(path: Path) -> None:
    auth, new = authenticator(path), token("new")
    ci, web = await auth.identify(CI), await auth.identify(WEB)
    async with watching(auth):
        write(path, document(entry(new), entry(WEB, **TENANT)))
        await wait_until(lambda: is_known(auth, new))
    assert await refusal(auth, CI) == REFUSED
    assert (auth.still_valid(ci), auth.still_valid(web)) == (False, True), "an entry that is the same is valid still"


@pytest.mark.parametrize("changed", [entry(CI, role="reader"), entry(token("ci", 2)), entry(CI, expires="2090-01-01")])
async def test_a_caller_whose_entry_has_changed_is_not_valid(path: Path, changed: dict[str, object]) -> None:
    """Also if only the secret is another: whoever has the old one is to be cut off."""
    auth = authenticator(path)
    caller = await auth.identify(CI)
    async with watching(auth):
        write(path, document(changed))
        await wait_until(lambda: not auth.still_valid(caller))


def _half_written(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[: len(text) - 20])


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


BREAKAGES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "empty": lambda path: path.write_text(""),
    "half written": _half_written,
    "not YAML": lambda path: path.write_text("tokens: ["),
    "a role that is none": lambda path: path.write_text(document(entry(CI, role="x"))),
    "public": lambda path: path.chmod(0o644),
    "fifo": _fifo,
}


@pytest.mark.parametrize("broken", BREAKAGES)
async def test_a_file_that_turns_bad_changes_nothing_and_is_logged_once(
    path: Path, broken: str, logged: list[structlog.typing.EventDict]
) -> None:
    auth = authenticator(path)
    caller = await auth.identify(CI)
    async with watching(auth):
        BREAKAGES[broken](path)
        await wait_until(lambda: bool(logged))
        assert await auth.identify(CI) is caller
        assert auth.still_valid(caller)
        # It is looked at twice at least, and a good version is taken up.
        write(path.with_name("new"), document(entry(WEB)))
        path.with_name("new").replace(path)
        await wait_until(lambda: not auth.still_valid(caller))
    [refused] = [one for one in logged if one["event"] == "token_file_refused"]
    assert refused["log_level"] == "warning"
    assert str(path) in refused["reason"]
    assert "previous version stays in force" in refused["consequence"]


async def test_a_change_within_one_tick_of_the_clock_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has the same size and times as the version that was read, as after two writes in a row."""
    auth = authenticator(path)
    caller = await auth.identify(CI)
    monkeypatch.setattr("redsched.auth.watched_file.version_of", lambda path: "unchanged")
    text = document(entry(token("ci", 2)), entry(WEB, **TENANT))
    assert len(text) == len(document(entry(CI), entry(WEB, **TENANT)))
    auth._file._version = "unchanged"  # type: ignore[assignment]  # what it was when the file was read
    write(path, text)
    async with watching(auth):
        await wait_until(lambda: not auth.still_valid(caller))


async def test_an_unexpected_error_does_not_end_the_watch(
    path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[structlog.typing.EventDict]
) -> None:
    """Or a revoked token would be valid for as long as the process lives."""
    auth, errors = authenticator(path), [OSError("once")]
    real = WatchedTokenFile.look

    def look(self: WatchedTokenFile) -> None:
        if errors:
            raise errors.pop()
        real(self)

    monkeypatch.setattr(WatchedTokenFile, "look", look)
    caller = await auth.identify(CI)
    async with watching(auth):
        write(path, document(entry(WEB)))
        await wait_until(lambda: not auth.still_valid(caller))
    assert "token_file_not_checked" in [one["event"] for one in logged]
