"""Writing the files that commands make."""

from contextlib import suppress
from pathlib import Path

from redsched.errors import InvalidRequest


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a full disk must not destroy an earlier one. Raises InvalidRequest."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise InvalidRequest(f"{path} cannot be written: {error.strerror}") from error
