"""Files with secrets: what is refused, and that nothing of them is shown."""

import os
from pathlib import Path

import pytest

from redsched.auth.private_file import read_private
from redsched.auth.secret_file import read_secret
from redsched.errors import InvalidRequest
from tests.auth.parts import write


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o602, 0o660])
def test_what_others_may_access_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(InvalidRequest, match=f"secrets .* has mode {mode:04o}: .*chmod 600"):
        read_private("secrets", write(tmp_path / "f", "x", mode), 10)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_what_its_owner_alone_may_access_is_read(tmp_path: Path, mode: int) -> None:
    assert read_private("secrets", write(tmp_path / "f", "x", mode), 10) == "x"


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f", 0o600)
    with pytest.raises(InvalidRequest, match="not a regular file"):
        read_private("secrets", tmp_path / "f", 10)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/"])
def test_devices_and_folders_are_refused(path: str) -> None:
    with pytest.raises(InvalidRequest, match="not a regular file"):
        read_private("secrets", Path(path), 10)


def test_the_size_is_limited(tmp_path: Path) -> None:
    assert read_private("secrets", write(tmp_path / "f", "x" * 10), 10) == "x" * 10
    with pytest.raises(InvalidRequest, match="more than 10 bytes"):
        read_private("secrets", write(tmp_path / "f", "x" * 11), 10)


def test_a_missing_file_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_private("secrets", tmp_path / "f", 10)
    (tmp_path / "f").write_bytes(b"\xff")
    (tmp_path / "f").chmod(0o600)
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        read_private("secrets", tmp_path / "f", 10)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_is_one_line(tmp_path: Path, end: str) -> None:
    assert read_secret(write(tmp_path / "f", f"rst_a_b{end}")) == "rst_a_b"


@pytest.mark.parametrize("text", ["", "\n", "Q7x\nQ7x\n", "Q7x two", " Q7x", "Q7x\n\n", "Q7x\t", "é"])
def test_a_secret_that_is_not_one_line_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_secret(write(tmp_path / "f", text))
    assert "Q7x" not in str(caught.value)


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="chmod 600"):
        read_secret(write(tmp_path / "f", "secret", 0o644))
