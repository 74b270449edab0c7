"""What do the gap distributions look like? A chart of their densities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cepheid.errors import ModelError
from cepheid.model.chain import quantiles
from cepheid.model.gap import GapDistribution


def gap_chart(gaps: Mapping[str, GapDistribution], unit: str | None) -> Any:
    """An altair line chart, one line per component, up to where nearly all events have come."""
    try:
        import altair
    except ImportError as error:
        raise ImportError("plot() needs altair: pip install 'cepheid[report]'") from error
    if not gaps:
        raise ModelError("the model has no gap distributions to plot", hint="add gaps={'y': ...}")
    rows = [row for name, gap in gaps.items() for row in _curve(name, gap)]
    title = f"gap ({unit})" if unit else "gap"
    return (
        altair.Chart(altair.InlineData(values=rows))
        .mark_line()
        .encode(
            x=altair.X("gap:Q", title=title),
            y=altair.Y("density:Q", title="density"),
            color=altair.Color("component:N"),
            tooltip=["component:N", "gap:Q", "density:Q", "come by then:Q"],
        )
        .properties(title="When events come after the last positive component")
    )


def _curve(name: str, gap: GapDistribution) -> list[dict[str, Any]]:
    """Points of one density. It may be infinite at zero, so the line begins where the first percent has come."""
    far = quantiles(gap, [0.99], 1e6 * gap.mean) or (gap.mean,)
    near = quantiles(gap, [0.01], far[0]) or (0.0,)
    start = 0.0 if np.isfinite(gap.pdf(0.0)) else near[0]
    # Both sides of every jump, so that histograms show steps.
    jumps = [k * side for k in gap.kinks() if start <= k <= far[0] for side in (1.0 - 1e-9, 1.0 + 1e-9)]
    times = np.unique(np.concatenate([np.linspace(start, far[0], 200), jumps]))
    density, come = gap.pdf(times), gap.cdf(times)
    return [
        {"component": name, "gap": float(t), "density": float(d), "come by then": float(c)}
        for t, d, c in zip(times, density, come, strict=True)
    ]
