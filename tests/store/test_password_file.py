"""The store's password in a file: it is used, only a private file is read, and no error shows it."""

from pathlib import Path

import pytest

from redsched.errors import InvalidRequest, RedschedError
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from redsched.store.topology.password import has_password
from tests.support.secret_watch import MARK

PASSWORD = f"{MARK}file"


def file_with(folder: Path, text: str, mode: int = 0o600) -> str:
    """Write a file, and return its path."""
    path = folder / "password"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def guard(server: PrivateServer) -> str:
    """Give the server a user with a password, and return the URL with the user alone."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "redsched", "on", f">{PASSWORD}", "~*", "&*", "+@all")
    return server.url.replace("unix://", "unix://redsched@")


async def test_the_password_of_the_file_is_used(fresh_server: PrivateServer, tmp_path: Path) -> None:
    settings = Settings(redis_password_file=file_with(tmp_path, f"{PASSWORD}\n"))
    async with Store.connect(guard(fresh_server), settings) as store:
        assert await store.memory_policy() == "noeviction"
        assert MARK not in store.url


async def test_no_error_shows_a_wrong_password(fresh_server: PrivateServer, tmp_path: Path) -> None:
    settings = Settings(redis_password_file=file_with(tmp_path, f"{PASSWORD}-wrong"))
    with pytest.raises(RedschedError) as error:
        async with Store.connect(guard(fresh_server), settings):
            pass
    assert MARK not in f"{error.value!r} {error.value} {error.value.__cause__!r}"


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [(PASSWORD, 0o640, "mode 0640"), ("", 0o600, "not one line"), (f"{PASSWORD}\nb", 0o600, "not one line")],
)
async def test_other_files_are_refused(tmp_path: Path, text: str, mode: int, problem: str) -> None:
    settings = Settings(redis_password_file=file_with(tmp_path, text, mode))
    with pytest.raises(InvalidRequest, match=problem) as error:
        async with Store.connect("redis://redsched@127.0.0.1:1", settings):
            pass
    assert MARK not in str(error.value)


async def test_two_passwords_are_refused(tmp_path: Path) -> None:
    settings = Settings(redis_password_file=file_with(tmp_path, PASSWORD))
    with pytest.raises(InvalidRequest, match="keep the file"):
        async with Store.connect(f"redis://:{PASSWORD}@127.0.0.1:1", settings):
            pass


def test_urls_with_a_password_are_told_from_others() -> None:
    assert has_password(f"redis://:{PASSWORD}@h")
    assert has_password(f"sentinel://h/main?sentinel_password={PASSWORD}")
    assert not has_password("redis://user@h")
