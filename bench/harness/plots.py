"""A plot per experiment: a line for every contestant, a panel for every series; bars where the axis holds words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.harness.experiment import Experiment
from bench.harness.summary import Summary

LABELS = {"events_per_second": "events per second", "seconds": "seconds", "peak_mb": "peak memory (MB)"}


def plot(experiment: Experiment, summary: Summary, path: Path) -> None:
    """Draws the experiment's figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(series, y) for y in (experiment.y, *experiment.also) for series in summary.series()]
    if not panels:
        return
    columns = min(3, len(panels))
    if len(summary.series()) in (2, 3):
        columns = len(summary.series())
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.6 * columns, 3.4 * rows), dpi=110, squeeze=False)
    for place, (series, y) in enumerate(panels):
        panel(axes[place // columns][place % columns], experiment, summary, series, y)
    for place in range(len(panels), rows * columns):
        axes[place // columns][place % columns].set_visible(False)
    figure.suptitle(f"{experiment.source}: {experiment.title}", fontsize=10)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def panel(axes: Any, experiment: Experiment, summary: Summary, series: str, y: str) -> None:
    """One series and one number of it."""
    xs = summary.xs(series=series)
    words = any(isinstance(x, str) for x in xs)
    names = summary.contestants(series)
    for number, name in enumerate(names):
        places = summary.xs(name, series)
        values = [summary.value(name, x, series, y) for x in places]
        if words:
            width = 0.8 / len(names)
            axes.bar([xs.index(x) + number * width for x in places], values, width, label=name)
        else:
            axes.plot(places, values, marker="o", markersize=3, label=name)
    if words:
        axes.set_xticks([place + 0.4 for place in range(len(xs))], [str(x) for x in xs], rotation=25, fontsize=7)
    elif experiment.log_x:
        axes.set_xscale("log")
    if experiment.log_y:
        axes.set_yscale("log")
    axes.set(title=series, xlabel=experiment.x, ylabel=LABELS.get(y, y.replace("_", " ")))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=7)
