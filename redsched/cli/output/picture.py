"""A picture of replays: fill, fragmentation and refusals over time. Needs matplotlib, which is in the extra `plots`."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from redsched.offline.replay import Replayed

UNITS = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (300.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
"""From which length of a replay on which unit of time is used, in seconds, and its name."""
PANELS = ("in use", "free, but unusable", "places refused")
INCHES, DPI = (9.0, 8.0), 120
STYLES = ("-", "--", "-.", ":")
"""Lines that lie on each other stay visible."""


def check_matplotlib() -> None:
    """Raise ModuleNotFoundError if matplotlib is not installed."""
    import matplotlib.figure  # noqa: F401 - only whether it is there


def picture(replays: Sequence[tuple[str, Replayed]], resource_class: str) -> bytes:
    """Return a PNG with a line for each replay, by its name, of a class that all of them have."""
    from matplotlib.figure import Figure

    image = Figure(figsize=INCHES, layout="constrained")
    axes = image.subplots(len(PANELS), sharex=True)
    label = _draw(axes, replays, resource_class)
    for panel, title in zip(axes, PANELS, strict=True):
        panel.set_ylabel(title)
        panel.set_ylim(bottom=0)
        panel.margins(x=0)
        panel.set_xlim(left=0)
        panel.grid(alpha=0.3)
    for panel in axes[:2]:
        panel.yaxis.set_major_formatter("{x:g} %")
    axes[-1].set_xlabel(label)
    axes[-1].yaxis.get_major_locator().set_params(integer=True)
    axes[0].set_title(f"Replay: {resource_class}")
    image.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    written = BytesIO()
    image.savefig(written, dpi=DPI, format="png")
    return written.getvalue()


def _draw(axes: Any, replays: Sequence[tuple[str, Replayed]], resource_class: str) -> str:
    """Draw the lines, and return what the horizontal axis shows."""
    last_s = max(one.samples[-1].at_s for _, one in replays)
    divisor, unit = next((seconds, name) for least, seconds, name in UNITS if last_s >= least)
    for number, (name, replayed) in enumerate(replays):
        samples, style = replayed.samples, STYLES[number % len(STYLES)]
        along = [one.at_s / divisor if last_s else one.requested for one in samples]
        fill = [100 * one.fill[resource_class] for one in samples]
        unusable = [100 * one.fragmentation[resource_class] for one in samples]
        for panel, values in zip(axes, (fill, unusable, [one.refused for one in samples]), strict=True):
            panel.plot(along, values, style, label=name, linewidth=1.5)
    return f"time in {unit}" if last_s else "places requested, all at one time"
