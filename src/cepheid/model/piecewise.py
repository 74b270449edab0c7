"""How is a function on [0, W] held so that it can be evaluated and integrated to nearly machine precision?

As Chebyshev polynomials on panels that are cut at the known kinks and then halved until they resolve the function.
A panel whose ends differ by more than a factor two is polynomial in log t instead of t: gamma and Weibull gaps behave
like a power of t near zero, which is a short exponential in log t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from cepheid.model.gap import Floats

Function = Callable[[Floats], Floats]

ORDER = 16
# No panel spans more than this factor, so that sixteen points suffice in log t for products of two functions.
WIDEST_RATIO = 16.0
LOG_RATIO = 2.0
MOST_PANELS = 3000
# A panel this much narrower than its distance from zero is not cut further: times are doubles.
NARROWEST = 1e-13

_ANGLES = np.pi * (np.arange(ORDER) + 0.5) / ORDER
_NODES = np.cos(_ANGLES)
_TO_COEFFICIENTS = 2.0 / ORDER * np.cos(np.outer(np.arange(ORDER), _ANGLES))
_TO_COEFFICIENTS[0] /= 2.0
# Three more points per panel test the polynomial where it was not fitted.
_PROBES = np.array([-0.97, 0.05, 0.93])
_POINTS = np.concatenate([_NODES, _PROBES])


@dataclass(frozen=True, eq=False)
class Piecewise:
    """Chebyshev coefficients per panel; `error` is the largest residue of panels that could not be resolved."""

    breaks: Floats
    coefficients: Floats
    error: float

    def __call__(self, x: Floats) -> Floats:
        flat = np.ravel(np.asarray(x, dtype=np.float64))
        panel = find_panel(self.breaks, flat)
        return self.on_panel(panel, flat).reshape(np.shape(x))

    def on_panel(self, panel: np.ndarray, x: Floats) -> Floats:
        """The values at x, where `panel` says in which panel each row (or each element) of x lies."""
        shape = (-1,) + (1,) * (x.ndim - panel.ndim)
        u = to_unit(self.breaks[panel].reshape(shape), self.breaks[panel + 1].reshape(shape), x)
        # Clenshaw's recurrence, whole columns at a time.
        after, after_next = np.zeros_like(u), np.zeros_like(u)
        for k in range(ORDER - 1, 0, -1):
            after, after_next = 2.0 * u * after - after_next + self.coefficients[panel, k].reshape(shape), after
        return np.asarray(u * after - after_next + self.coefficients[panel, 0].reshape(shape))


def find_panel(breaks: Floats, x: Floats) -> np.ndarray:
    """The index of the panel that holds x; times outside belong to the first or last."""
    return np.clip(np.searchsorted(breaks, x, side="right") - 1, 0, len(breaks) - 2)


def is_logarithmic(left: Floats, right: Floats) -> np.ndarray:
    """Whether panels [left, right] use log t."""
    return (left > 0.0) & (right > LOG_RATIO * left)


def to_unit(left: Floats, right: Floats, x: Floats) -> Floats:
    """The place of x in its panel, from -1 to 1."""
    linear = (2.0 * x - left - right) / (right - left)
    logarithmic = is_logarithmic(left, right)
    if not logarithmic.any():
        return linear
    safe_left = np.where(logarithmic, left, 1.0)
    safe_right = np.where(logarithmic, right, np.e)
    log_x = np.log(np.where(logarithmic & (x > 0.0), x, safe_left))
    logs = (2.0 * log_x - np.log(safe_left) - np.log(safe_right)) / (np.log(safe_right) - np.log(safe_left))
    return np.where(logarithmic, logs, linear)


def from_unit(left: Floats, right: Floats, logarithmic: np.ndarray, u: Floats) -> tuple[Floats, Floats]:
    """Points of panels (one panel per row) at places u in [-1, 1], and dx/du there."""
    left, right, logarithmic = left[:, None], right[:, None], logarithmic[:, None]
    half = (right - left) / 2.0
    x, slope = left + half * (u + 1.0), np.broadcast_to(half, (len(left), len(u)))
    if not logarithmic.any():
        return x, slope
    half_log = np.log(np.where(logarithmic, right, 1.0) / np.where(logarithmic, left, 1.0)) / 2.0
    log_x = np.where(logarithmic, left, 1.0) * np.exp(half_log * (u + 1.0))
    return np.where(logarithmic, log_x, x), np.where(logarithmic, log_x * half_log, slope)


def seed_breaks(kinks: Iterable[float], features: Iterable[float], window: float) -> Floats:
    """First breaks on [0, window]: every kink, features that are not next to another break, and steps of at most 16.

    Kinks must be breaks, or no polynomial fits. Features (quantiles of the gaps) say where something happens, so that
    a narrow density in a wide window is not stepped over.
    """
    kept: list[float] = []
    for kink in sorted(kinks):
        if kink < window and kink - (kept[-1] if kept else 0.0) > NARROWEST * window:
            kept.append(kink)
    hard = np.array([*kept, window])
    for feature in sorted(features):
        if 0.0 < feature < window and np.min(np.abs(hard - feature)) > 0.02 * feature:
            hard = np.append(hard, feature)
    breaks = [0.0]
    for point in np.sort(hard):
        last = breaks[-1]
        if last > 0.0 and point > WIDEST_RATIO * last:
            steps = math.ceil(math.log(point / last) / math.log(WIDEST_RATIO))
            breaks.extend(np.geomspace(last, point, steps + 1)[1:-1])
        breaks.append(float(point))
    return np.array(breaks)


def resolve(
    function: Function, breaks: Floats, allowed: Callable[[Floats, Floats, Floats], Floats], most: int = MOST_PANELS
) -> Piecewise:
    """Fit `function` on panels, halving them until the residue of each is at most what `allowed` grants it.

    `allowed(points, values, widths)` has one row per panel. The residue is the size of the last coefficients and the
    error at points that were not fitted, whichever is larger.
    """
    left, right = breaks[:-1], breaks[1:]
    done_left: list[Floats] = []
    done_coefficients: list[Floats] = []
    count, error = 0, 0.0
    while len(left):
        points, _ = from_unit(left, right, is_logarithmic(left, right), _POINTS)
        values = function(points.ravel()).reshape(points.shape)
        coefficients = values[:, :ORDER] @ _TO_COEFFICIENTS.T
        predicted = np.polynomial.chebyshev.chebval(_PROBES, coefficients.T)
        residue = np.maximum(
            np.abs(predicted - values[:, ORDER:]).max(axis=1), np.abs(coefficients[:, -3:]).max(axis=1)
        )
        resolved = residue <= allowed(points, values, right - left)
        finest = (right - left <= NARROWEST * right) | (right <= 1e-290)
        if count + 2 * len(left) > most:
            finest[:] = True
        error = max(error, float(residue[finest & ~resolved].max(initial=0.0)))
        done = resolved | finest
        done_left.append(left[done])
        done_coefficients.append(coefficients[done])
        count += int(done.sum())
        left, right = _halve(left[~done], right[~done])
    order = np.argsort(np.concatenate(done_left))
    every_left = np.concatenate(done_left)[order]
    return Piecewise(np.append(every_left, breaks[-1]), np.concatenate(done_coefficients)[order], error)


def _halve(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    geometric = np.sqrt(left) * np.sqrt(right)
    middle = np.where(is_logarithmic(left, right), geometric, (left + right) / 2.0)
    middle = np.where(left == 0.0, right / WIDEST_RATIO, middle)
    return np.concatenate([left, middle]), np.concatenate([middle, right])
