"""Reading of files with secrets: regular, accessible to their owner alone, and of a bounded size."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from redsched.errors import InvalidRequest

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class FileVersion:
    """What changes whenever a file is written, replaced, or gets another mode."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def version_of(path: Path) -> FileVersion | None:
    """Return the present version of a file; None if there is none, or none that this process may look up."""
    try:
        about = path.stat()
    except OSError:
        return None
    return FileVersion(about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def read_private(what: str, path: Path, most_bytes: int) -> str:
    """Return the text of a file. `what` it is begins each error.

    Raises InvalidRequest for a file that its group or others may access, that is not regular, or that is too large.
    """
    try:
        # Opening a FIFO would wait for a writer. The descriptor is checked, not the path, which may change meanwhile.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            check_private(f"{what} {path}", os.fstat(file))
            content = _read(file, most_bytes + 1)
        finally:
            os.close(file)
    except OSError as error:
        raise InvalidRequest(f"{what} {path} cannot be read: {error.strerror}") from error
    if len(content) > most_bytes:
        raise InvalidRequest(f"{what} {path} has more than {most_bytes} bytes, which is the most")
    return _decoded(f"{what} {path}", content)


def check_private(name: str, about: os.stat_result) -> None:
    """Raise InvalidRequest unless this is a regular file that only its owner may access."""
    if not stat.S_ISREG(about.st_mode):
        raise InvalidRequest(f"{name} is not a regular file: name a file")
    if about.st_mode & OTHERS:
        mode = stat.S_IMODE(about.st_mode)
        raise InvalidRequest(f"{name} has mode {mode:04o}: let only its owner access it, with `chmod 600`")


def _read(file: int, most_bytes: int) -> bytes:
    parts: list[bytes] = []
    while most_bytes > 0 and (part := os.read(file, most_bytes)):
        parts.append(part)
        most_bytes -= len(part)
    return b"".join(parts)


def _decoded(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{name} is not UTF-8 text: write it again") from None
