"""A token file that is looked at: when it is read again, and what is logged."""

from pathlib import Path

import pytest
import structlog

from redsched.auth.watched_file import WatchedTokenFile
from tests.auth.parts import document, entry, token, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "tokens.yaml", document(entry(token("ci"))))


def test_each_version_is_read_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second write within one tick of the file system's clock may leave size and times as they were."""
    version = ["first"]
    monkeypatch.setattr("redsched.auth.watched_file.version_of", lambda _: version[0])
    file = WatchedTokenFile(path)
    for seen in ("first", "second", "third"):
        version[0] = seen
        for number in (1, 2):
            write(path, document(entry(token(f"{seen}{number}"))))
            file.look()
            if seen == "first" and number == 2:
                continue  # it was read when the object was made, and once more
            assert list(file.contents.tokens) == [f"{seen}{number}"]
        write(path, document())
        file.look()
        assert file.contents.tokens, "a version is not read a third time"


def test_a_bad_version_is_logged_once_and_another_again(path: Path) -> None:
    file = WatchedTokenFile(path)
    with structlog.testing.capture_logs() as logged:
        for bad in ("tokens: [", "tokens: [7]"):
            path.write_text(bad)
            for _ in range(4):
                file.look()
        write(path, document())
        file.look()
        for _ in range(2):
            path.unlink()
            for _ in range(4):
                file.look()
            write(path, document())
            file.look()
    refused = [one["reason"] for one in logged if one["event"] == "token_file_refused"]
    assert [("YAML" in one, "token 1" in one, "No such file" in one) for one in refused] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
        (False, False, True),
    ]
