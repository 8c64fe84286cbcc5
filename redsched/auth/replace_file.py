"""Changing a private file: one writer at a time, and at every moment a complete file, also after a crash.

The lock is on the file itself, which only its owner can open, so that others cannot hold it. As a change replaces the
file, a writer that got the lock of a replaced one starts again.
"""

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from redsched.auth.private_file import check_private, read_private
from redsched.errors import InvalidRequest

LOCK_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.02


def change_private(what: str, path: Path, most_bytes: int, edit: Callable[[str], str]) -> None:
    """Replace the text of a file by what `edit` returns for it. A file that does not exist is created, with mode 0600.

    Owner, group and mode of an existing file stay. Raises InvalidRequest, and what `edit` raises; then nothing changes.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        while not _change(what, target, most_bytes, edit):
            pass  # another process has replaced or created it meanwhile
    except OSError as error:
        raise InvalidRequest(f"{what} {path} cannot be written: {error.strerror}") from error


def _change(what: str, path: Path, most_bytes: int, edit: Callable[[str], str]) -> bool:
    """Return whether the file was still the same when it was to be changed."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return _create(path, edit(""))
    try:
        check_private(f"{what} {path}", os.fstat(lock))
        _wait_for(lock, f"{what} {path}")
        if not _is_at(lock, path):
            return False
        text = edit(read_private(what, path, most_bytes))
        with written_beside(path, text, os.fstat(lock)) as file:
            file.replace(path)
    finally:
        os.close(lock)
    _sync_folder(path.parent)
    return True


def _create(path: Path, text: str) -> bool:
    with written_beside(path, text) as file:
        try:
            path.hardlink_to(file)
        except FileExistsError:
            return False
    _sync_folder(path.parent)
    return True


def _wait_for(lock: int, name: str) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise InvalidRequest(
                    f"{name} is being changed by another process for {LOCK_TIMEOUT_S:g} s: try again when it has ended"
                ) from None
        time.sleep(LOOK_EVERY_S)


def _is_at(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def written_beside(path: Path, text: str, like: os.stat_result | None = None) -> Iterator[Path]:
    """Yield a private file beside `path` with the text on disk, and remove it if it is still there at the end.

    Its mode is 0600; with `like`, it has the mode, owner and group of that file.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    file = Path(name)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as content:
            if like is not None:
                _take_after(descriptor, like)
            content.write(text)
            content.flush()
            os.fsync(descriptor)
        yield file
    finally:
        file.unlink(missing_ok=True)


def _take_after(descriptor: int, like: os.stat_result) -> None:
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
