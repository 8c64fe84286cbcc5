"""The plot as an image, with matplotlib: `pip install redsched[plots]`."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.models.figures import Row
from benchmarks.models.report import METRICS

COLUMNS = 3


def save(rows: Sequence[Row], folder: Path) -> Path:
    """Draw every metric over the number of schedulers, one line for each model. Raises ImportError without matplotlib.

    No display is needed.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 8), layout="constrained")
    for number, (name, of) in enumerate(METRICS.items(), 1):
        axes = figure.add_subplot(-(-len(METRICS) // COLUMNS), COLUMNS, number)
        for model in dict.fromkeys(row.model for row in rows):
            points = sorted((row.schedulers, of(row)) for row in rows if row.model == model)
            axes.plot([x for x, _ in points], [y for _, y in points], marker="o", label=model)
        axes.set(title=name, xlabel="scheduler processes", ylim=(0, None if any(map(of, rows)) else 1))
        axes.set_xticks(sorted({row.schedulers for row in rows}))
    figure.axes[0].legend()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "models.png"
    figure.savefig(path, dpi=120)
    return path
