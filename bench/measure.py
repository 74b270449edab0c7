"""Timing, tables and plots that all benchmarks share. A number means something only beside one of the same run."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

# A quick run writes elsewhere (python -m bench missing --size quick): it never overwrites what is published.
RESULTS = Path(os.environ.get("CEPHEID_BENCH_RESULTS") or Path(__file__).parent / "results")


def on_one_core() -> None:
    """Arrow's compute functions use all cores unless told otherwise; the kernels use one."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def best_seconds(call: Callable[[], Any], repeat: int = 3) -> tuple[float, Any]:
    """The shortest of several runs, and what the call returned; the first run warms up and does not count."""
    result = call()
    seconds = []
    for _ in range(repeat):
        begun = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - begun)
    return min(seconds), result


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on the terminal."""
    texts = [[_text(value) for value in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in texts)) for i, name in enumerate(columns)]
    print(f"\n{title}")
    print("  ".join(name.rjust(width) for name, width in zip(columns, widths, strict=True)))
    for row in texts:
        print("  ".join(value.rjust(width) for value, width in zip(row, widths, strict=True)))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def save(name: str, numbers: Mapping[str, Any], cores: int = 1) -> None:
    """Keeps the numbers of a run, with what they were measured on."""
    RESULTS.mkdir(exist_ok=True)
    facts = {"python": platform.python_version(), "machine": platform.machine(), "cores": cores}
    (RESULTS / f"{name}.json").write_text(json.dumps({"measured_on": facts, **numbers}, indent=2) + "\n")


def plot_lines(
    name: str,
    title: str,
    x: tuple[str, Sequence[float]],
    y_label: str,
    lines: Mapping[str, Sequence[float]],
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> None:
    """A small line chart beside the numbers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.2), dpi=110)
    for label, values in lines.items():
        axes.plot(x[1], values, marker="o", markersize=3, label=label)
    axes.set(title=title, xlabel=x[0], ylabel=y_label)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if any(lines):
        axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png")
    plt.close(figure)
