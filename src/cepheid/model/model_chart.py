"""What do the gap distributions look like? A chart of their densities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cepheid.draw.chart import Chart
from cepheid.errors import ModelError
from cepheid.model.chain import quantiles
from cepheid.model.gap import GapDistribution


def gap_chart(gaps: Mapping[str, GapDistribution], unit: str | None) -> Chart:
    """A chart: all cumulative distributions in one frame, and each density in a frame of its own.

    Cumulative curves can be compared, and end at the probability that the event happens; densities cannot, since one
    of them may be a hundred times higher than the others.
    """
    try:
        import altair
    except ImportError as error:
        raise ImportError("plot() needs altair: pip install 'cepheid[report]'") from error
    if not gaps:
        raise ModelError("the model has no gap distributions to plot", hint="add gaps={'y': ...}")
    rows = [row for name, gap in gaps.items() for row in _curve(name, gap)]
    base = altair.Chart(altair.InlineData(values=rows)).encode(
        x=altair.X("gap:Q", title=f"gap ({unit})" if unit else "gap"),
        color=altair.Color("component:N"),
        tooltip=["component:N", "gap:Q", "density:Q", "come by then:Q"],
    )
    cumulative = (
        base.mark_line()
        .encode(y=altair.Y("come by then:Q", title="has come by then", scale=altair.Scale(domain=[0, 1])))
        .properties(title="When events come after the last positive component", width=300, height=220)
    )
    densities = (
        base.mark_line()
        .encode(y=altair.Y("density:Q", title="density"))
        .properties(width=140, height=90)
        .facet(facet=altair.Facet("component:N", title=None), columns=2)
        .resolve_scale(x="independent", y="independent")
    )
    return Chart(cumulative | densities, f"How soon events come: {', '.join(gaps)}")


def _curve(name: str, gap: GapDistribution) -> list[dict[str, object]]:
    """Points of one density. It may be infinite at zero, so the line then begins where one in twenty has come."""
    far = quantiles(gap, [0.99], 1e6 * gap.mean) or (gap.mean,)
    near = quantiles(gap, [0.05], far[0]) or (0.0,)
    start = 0.0 if np.isfinite(gap.pdf(0.0)) else near[0]
    # Both sides of every jump, so that histograms show steps.
    jumps = [k * side for k in gap.kinks() if start <= k <= far[0] for side in (1.0 - 1e-9, 1.0 + 1e-9)]
    times = np.unique(np.concatenate([np.linspace(start, far[0], 200), jumps]))
    density, come = gap.pdf(times), gap.cdf(times)
    return [
        {"component": name, "gap": float(t), "density": float(d), "come by then": float(c)}
        for t, d, c in zip(times, density, come, strict=True)
    ]
