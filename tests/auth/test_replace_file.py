"""Changing a private file: complete at every moment, one writer at a time, as private as before."""

import fcntl
import os
import stat
import threading
from pathlib import Path

import pytest

from redsched.auth import replace_file
from redsched.auth.replace_file import change_private
from redsched.errors import InvalidRequest
from tests.auth.parts import write


def change(path: Path, text: str = "new") -> None:
    change_private("file", path, 100, lambda _: text)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        change(tmp_path / "f")
    finally:
        os.umask(before)
    assert ((tmp_path / "f").read_text(), mode(tmp_path / "f")) == ("new", 0o600)
    assert [one.name for one in tmp_path.iterdir()] == ["f"]


def test_a_file_is_replaced_and_not_written_to(tmp_path: Path) -> None:
    path = write(tmp_path / "f", "old", 0o400)
    with path.open() as reader:
        change(path)
        assert reader.read() == "old"
    assert (path.read_text(), mode(path)) == ("new", 0o400)
    assert [one.name for one in tmp_path.iterdir()] == ["f"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner_and_group_stay_when_root_changes_it(tmp_path: Path) -> None:
    """Otherwise the API, which runs as another user, could not read its file any more."""
    path = write(tmp_path / "f", "old")
    os.chown(path, 12_345, 23_456)
    change(path)
    about = path.stat()
    assert (about.st_uid, about.st_gid, mode(path)) == (12_345, 23_456, 0o600)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path / "f", "old")
    (tmp_path / "link").symlink_to("f")
    change(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "f").read_text() == "new"


def test_an_error_leaves_the_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "f", "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(InvalidRequest, match="cannot be written: No space left"):
        change(path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["f"]


def test_what_others_may_read_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="chmod 600"):
        change(write(tmp_path / "f", "old", 0o640))
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(InvalidRequest, match="not a regular file"):
        change(tmp_path / "fifo")
    with pytest.raises(InvalidRequest, match="cannot be written: No such file"):
        change(tmp_path / "none" / "f")


@pytest.mark.parametrize("exists", [True, False])
def test_changes_at_once_are_made_one_after_the_other(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "f"
    if exists:
        write(path, "")

    def add(number: int) -> None:
        change_private("file", path, 1000, lambda text: f"{text}{number}\n")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(10)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(path.read_text().split()) == [str(number) for number in range(10)]


def test_a_writer_that_does_not_end_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replace_file, "LOCK_TIMEOUT_S", 0.05)
    path = write(tmp_path / "f", "old")
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InvalidRequest, match="being changed by another process"):
            change(path)
