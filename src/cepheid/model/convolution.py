"""What is the integral of density(s) * rest(t - s) over 0 < s < t, for many t at once?

Gauss-Legendre on panels cut at the breaks of both functions, so that every panel holds a product of two polynomials
of degree 15, which sixteen points integrate exactly. The interval is cut at t/2 and each half is measured from its own
end, so that a density that is infinite at zero, or a rest that rises like a power there, loses no digits.
"""

from __future__ import annotations

import numpy as np

from cepheid.model.gap import Floats
from cepheid.model.piecewise import ORDER, Function, Piecewise, find_panel, from_unit, is_logarithmic

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
# Memory: panels of one block of times, sixteen points each, a handful of arrays of doubles.
_PANELS_PER_BLOCK = 30_000


def convolve(density: Function, density_breaks: Floats, rest: Piecewise, t: Floats) -> Floats:
    """∫ density(s) rest(t - s) ds from 0 to t, for each t.

    `density_breaks` are panels on which the density is smooth, as `resolve` finds them.
    """
    result = np.zeros(len(t))
    per_time = len(density_breaks) + len(rest.breaks) + 2
    block = max(_PANELS_PER_BLOCK // per_time, 1)
    for start in range(0, len(t), block):
        times = t[start : start + block]
        early = _half(times, density_breaks, rest.breaks)
        late = _half(times, rest.breaks, density_breaks)
        row, s, weights, _, panel = early
        early_sums = (weights * density(s) * rest.on_panel(panel, times[row, None] - s)).sum(axis=1)
        result[start : start + block] += np.bincount(row, early_sums, len(times))
        row, x, weights, panel, _ = late
        late_sums = (weights * rest.on_panel(panel, x) * density(times[row, None] - x)).sum(axis=1)
        result[start : start + block] += np.bincount(row, late_sums, len(times))
    return result


def _half(t: Floats, own: Floats, other: Floats) -> tuple[np.ndarray, Floats, Floats, np.ndarray, np.ndarray]:
    """Quadrature for 0 < x < t/2, where one function takes x and the other takes t - x.

    Returns, per panel: the index of its t, the points and weights, and the panels of both functions it lies in.
    """
    top = (t / 2.0)[:, None]
    cuts = np.concatenate(
        [np.broadcast_to(own, (len(t), len(own))), t[:, None] - other, np.zeros_like(top), top], axis=1
    )
    cuts = np.sort(np.clip(cuts, 0.0, top), axis=1)
    row, column = np.nonzero(cuts[:, 1:] > cuts[:, :-1])
    left, right = cuts[row, column], cuts[row, column + 1]
    middle = (left + right) / 2.0
    own_panel = find_panel(own, middle)
    # Log spacing only where the own function was resolved in log x.
    logarithmic = is_logarithmic(own[own_panel], own[own_panel + 1]) & (left > 0.0) & (right > 1.5 * left)
    points, slopes = from_unit(left, right, logarithmic, _NODES)
    return row, points, slopes * _WEIGHTS, own_panel, find_panel(other, t[row] - middle)
