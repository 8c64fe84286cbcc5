"""Read the small files of /sys and /proc. A file that does not exist, or disappears meanwhile, reads as empty."""

from pathlib import Path

SYS = Path("/sys")


def read_text(path: Path) -> str:
    """Return the text of a file without surrounding white space; '' if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def read_number(path: Path, otherwise: int = 0) -> int:
    """Return the whole number in a file; `otherwise` if there is none."""
    try:
        return int(read_text(path))
    except ValueError:
        return otherwise
