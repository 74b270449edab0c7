"""What a notebook shows of a model: its table, and how soon events come as small curves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from cepheid.model.chain import quantiles
from cepheid.model.gap import GapDistribution

_WIDTH, _HEIGHT = 120, 28


def model_html(
    title: str, rows: Sequence[Sequence[str]], gaps: Sequence[GapDistribution | None], notes: Sequence[str] = ()
) -> str:
    """The rows of a model's table, the first one being its head, each with the curve of its gap; notes below it."""
    head, *body = rows
    cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in [*head, "comes by then"])
    lines = []
    for row, gap in zip(body, gaps, strict=True):
        texts = "".join(f"<td>{escape(text)}</td>" for text in row)
        lines.append(f"<tr>{texts}<td>{_curve(gap, row[0]) if gap is not None else ''}</td></tr>")
    return (
        f'<div class="cepheid"><p>{escape(title)}</p><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>{notes_html(notes)}</div>"
    )


def notes_html(notes: Sequence[str]) -> str:
    """What a fit has to say of its model, line by line."""
    return "".join(f"<p>note: {escape(each).replace(chr(10), '<br>')}</p>" for each in notes)


def _curve(gap: GapDistribution, name: str) -> str:
    """The cumulative distribution up to where nearly all have come; its height is the probability to come at all."""
    far = (quantiles(gap, [0.99], 1e6 * gap.mean) or (gap.mean,))[0]
    times = np.linspace(0.0, far, 60)
    points = " ".join(
        f"{_WIDTH * at / 59:.1f},{_HEIGHT * (1 - come):.1f}" for at, come in enumerate(np.asarray(gap.cdf(times)))
    )
    message = escape(
        f"{name}: half have come after {_median(gap, far):.4g}, all but one in a hundred after {far:.4g}", True
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 -1 {_WIDTH} {_HEIGHT + 2}" role="img" '
        f'aria-label="{message}"><title>{message}</title><polyline points="{points}" fill="none" stroke="currentColor" '
        'stroke-width="1.5"/></svg>'
    )


def _median(gap: GapDistribution, far: float) -> float:
    return float((quantiles(gap, [0.5], far) or (gap.mean,))[0])
