"""Reading the small files of /sys and /proc. One that is not there, or goes away meanwhile, reads as empty."""

from pathlib import Path

SYS = Path("/sys")


def read_text(path: Path) -> str:
    """Return the text of a file without the white space around it; '' where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def read_number(path: Path, otherwise: int = 0) -> int:
    """Return the whole number that a file holds, `otherwise` where it holds none."""
    try:
        return int(read_text(path))
    except ValueError:
        return otherwise
