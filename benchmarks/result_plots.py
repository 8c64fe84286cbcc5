"""The ratios of a run as an image, with matplotlib: `pip install redsched[plots]`."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import with_ratios
from benchmarks.suite import Figure

ROW_INCHES = 0.25


def save(figures: Sequence[Figure], folder: Path) -> Path:
    """Draw a bar for each figure that has a baseline, on a logarithmic scale. Raises ImportError without matplotlib."""
    from matplotlib.figure import Figure as Image

    ratios = [(f"{one.program}: {one.name}", times) for one, times in with_ratios(figures) if times]
    image = Image(figsize=(12, 1.5 + ROW_INCHES * len(ratios)), layout="constrained")
    axes = image.add_subplot()
    # From 1 to the ratio: on a logarithmic scale a bar has no other beginning.
    axes.barh([name for name, _ in ratios], [times - 1 for _, times in ratios], left=1)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.margins(y=0.01)
    axes.set(title="times better than the baseline of the same run", xscale="log" if ratios else "linear")
    axes.invert_yaxis()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ratios.png"
    image.savefig(path, dpi=120)
    return path
