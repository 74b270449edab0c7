"""Which distribution do the gaps of a history follow? Families are compared by likelihood (AIC).

The likelihood is that of the counts per bin, so that all families, the histogram included, are judged alike, and so
that merged statistics from a cluster give the same answer as the gaps themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from cepheid.errors import ModelError
from cepheid.model.distributions import SMALLEST_SHAPE, Empirical, Exponential, Gamma, LogNormal, Uniform, Weibull
from cepheid.model.gap import Floats, GapDistribution
from cepheid.model.gap_statistics import GapStatistics, Moments, bin_edges

FEWEST_GAPS = 20
FAMILIES: tuple[type[GapDistribution], ...] = (Exponential, Gamma, LogNormal, Weibull, Uniform)
# A histogram explains everything a little better; it is taken only when its AIC leaves the families no support.
CLEARLY_BETTER = 10.0
_MOST_HISTOGRAM_BINS = 40
_FEWEST_PER_HISTOGRAM_BIN = 10.0
_EMPTY_INTERVAL = 1.5
# The next gap is as likely to fall between any two neighbouring ones of those seen, before the shortest or behind the
# longest (Hill's A(n)): an interval without a gap in it weighs as much as one gap, however wide it is.
_WEIGHT_OF_EMPTY = 1.0
_LARGEST_SHAPE = 1e6


@dataclass(frozen=True)
class FamilyFit:
    """The best member of a family; the lower the AIC, the better it explains the gaps."""

    distribution: GapDistribution
    log_likelihood: float
    aic: float


@dataclass(frozen=True)
class _Grouped:
    """Counts of gaps between lower and upper, and of censored gaps by when they were cut off.

    Gaps below `shortest`, half a step of the clock, are never recorded: events at one instant do not follow each other.
    """

    lower: Floats
    upper: Floats
    counts: Floats
    cut_at: Floats
    cut_counts: Floats
    never: float
    shortest: float


def fit_gap(
    samples: ArrayLike,
    censored: ArrayLike | None = None,
    families: Sequence[type[GapDistribution]] = FAMILIES,
    *,
    trials: float | None = None,
    resolution: float = 0.0,
    fewest: float = FEWEST_GAPS,
    component: str | None = None,
) -> GapDistribution:
    """The distribution that explains the gaps best, or a histogram when no family does.

    `censored` are waits that ended before the event came. Of `trials` beginnings, those in neither list never had
    the event: they determine `happens`, which is 1 otherwise. `resolution` is the clock's step (1 for whole seconds).

    >>> gaps = np.random.default_rng(1).exponential(60.0, 2000)
    >>> fit_gap(gaps, families=[Exponential], trials=2500)
    Exponential(mean=59.4..., happens=0.8)
    """
    statistics = GapStatistics.from_samples(samples, () if censored is None else censored, trials)
    return fit_from_statistics(statistics, families, resolution=resolution, fewest=fewest, component=component)


def fit_from_statistics(
    statistics: GapStatistics,
    families: Sequence[type[GapDistribution]] = FAMILIES,
    *,
    resolution: float = 0.0,
    fewest: float = FEWEST_GAPS,
    component: str | None = None,
    defective: bool = False,
) -> GapDistribution:
    """As `fit_gap`, from statistics that may have been merged from many parts.

    With `defective`, the event may never come although no trial proves it: then `happens` is told by how long the
    waits were that were cut off.
    """
    fits = compare_families(
        statistics, families, resolution=resolution, fewest=fewest, component=component, defective=defective
    )
    histogram = next(each for each in fits if isinstance(each.distribution, Empirical))
    best = next((each for each in fits if each is not histogram), histogram)
    return (histogram if histogram.aic < best.aic - CLEARLY_BETTER else best).distribution


def compare_families(
    statistics: GapStatistics,
    families: Sequence[type[GapDistribution]] = FAMILIES,
    *,
    resolution: float = 0.0,
    fewest: float = FEWEST_GAPS,
    component: str | None = None,
    defective: bool = False,
) -> tuple[FamilyFit, ...]:
    """The best of every family and the histogram, best first."""
    where = f" of {component!r}" if component else ""
    if statistics.count < fewest or statistics.count <= 1.0:
        raise ModelError(
            f"the history is too short to estimate the gaps{where}: {statistics.count:g} of them, "
            f"at least {fewest:g} are needed",
            hint="give more history or state the distribution yourself",
        )
    for family in families:
        if family not in _STARTS:
            known = ", ".join(each.__name__ for each in _STARTS)
            raise ModelError(f"cannot fit {getattr(family, '__name__', family)!r}", hint=f"families: {known}")
    grouped = _group(statistics, resolution)
    fits = [_fit_family(family, statistics, grouped, defective) for family in families]
    fits.append(_fit_histogram(grouped))
    return tuple(sorted(fits, key=lambda each: each.aic))


def _group(statistics: GapStatistics, resolution: float) -> _Grouped:
    bins = np.array([b for b, _ in statistics.bins], dtype=np.int64)
    lower, upper = bin_edges(bins)
    counts = np.array([count for _, count in statistics.bins])
    if resolution > 0.0:
        # Gaps are whole multiples of the clock's step. A multiple stands for the half steps around it, or the empty
        # bins between 1 and 2 would count against every smooth density.
        lower = (np.ceil(lower / resolution) - 0.5) * resolution
        upper = (np.ceil(upper / resolution) - 0.5) * resolution
        upper = np.maximum(upper, lower + resolution)
    cut_lower, cut_upper = bin_edges(np.array([b for b, _ in statistics.censored], dtype=np.int64))
    cut_counts = np.array([count for _, count in statistics.censored])
    return _Grouped(
        lower, upper, counts, np.sqrt(cut_lower * cut_upper), cut_counts, statistics.never, resolution / 2.0
    )


def _log_likelihood(gap: GapDistribution, grouped: _Grouped) -> float:
    """Of the counts, given the gap with its `happens`."""
    rising = gap.cdf(grouped.upper) - gap.cdf(grouped.lower)
    falling = gap.survival(grouped.lower) - gap.survival(grouped.upper)
    # The smaller of the two is a difference of small numbers and keeps its digits in that tail.
    masses = np.where(gap.cdf(grouped.lower) < 0.5 * gap.happens, rising, falling)
    total = float(special.xlogy(grouped.counts, np.maximum(masses, 1e-300)).sum())
    if len(grouped.cut_at):
        total += float(special.xlogy(grouped.cut_counts, np.maximum(gap.survival(grouped.cut_at), 1e-300)).sum())
    if grouped.shortest > 0.0 and gap.happens > 0.0:
        recorded = 1.0 - float(gap.cdf(grouped.shortest)) / gap.happens
        total -= float(grouped.counts.sum()) * math.log(max(recorded, 1e-300))
    if grouped.never:
        total += grouped.never * math.log(max(1.0 - gap.happens, 1e-300))
    return total


def _fit_family(
    family: type[GapDistribution], statistics: GapStatistics, grouped: _Grouped, defective: bool
) -> FamilyFit:
    start = start_from_moments(family, statistics.moments)
    open_ended = defective and float(grouped.cut_counts.sum()) > 0.0
    in_vain = statistics.never + (0.5 * float(grouped.cut_counts.sum()) if open_ended else 0.0)
    happens = statistics.count / (statistics.count + in_vain)
    if isinstance(start, Uniform):  # its best ends are the extremes
        low, high = statistics.smallest - grouped.shortest, statistics.largest + grouped.shortest
        ends = (start.low, start.high) if grouped.shortest == 0.0 else (max(low, 0.0), high)
        outside = 2.0 * _WEIGHT_OF_EMPTY / (statistics.count + 2.0 * _WEIGHT_OF_EMPTY)
        best: GapDistribution = Uniform(*ends, happens=happens, outside=outside)
    else:
        best = _climb(start, happens, grouped, open_ended)
    likelihood = _log_likelihood(best, grouped)
    parameters = (1 if family is Exponential else 2) + (grouped.never > 0.0 or open_ended)
    return FamilyFit(best, likelihood, 2.0 * parameters - 2.0 * likelihood)


def _climb(start: GapDistribution, happens: float, grouped: _Grouped, open_ended: bool) -> GapDistribution:
    """The member of start's family with the highest likelihood."""
    # Without censored gaps, the share of trials that had the event is the best `happens` whatever the shape.
    joint = len(grouped.cut_at) > 0 and (grouped.never > 0.0 or open_ended)
    first = encode_gap(start)
    if joint:
        first = np.append(first, special.logit(happens))

    def gap_at(x: Floats) -> GapDistribution:
        return _with(decode_gap(type(start), x), float(special.expit(x[-1])) if joint else happens)

    found = optimize.minimize(
        lambda x: -_log_likelihood(gap_at(x), grouped),
        first,
        method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-6, "maxiter": 2000},
    )
    return gap_at(found.x)


def start_from_moments(family: type[GapDistribution], moments: Moments) -> GapDistribution:
    """A member of the family from the sums alone: the best one for Exponential, Gamma and LogNormal."""
    return _STARTS[family](moments)


def encode_gap(gap: GapDistribution) -> Floats:
    """The parameters of a distribution as numbers without limits: logarithms, but for a lognormal's mu."""
    values = ((each, getattr(gap, each)) for each in _parameters(type(gap)))
    return np.array([value if name == "mu" else math.log(value) for name, value in values])


def decode_gap(family: type[GapDistribution], x: Floats) -> GapDistribution:
    """The distribution of `encode_gap`; a search that strays to absurd values is brought back to the edge."""
    values: dict[str, float] = {}
    for name, number in zip(_parameters(family), x, strict=False):
        value = float(number) if name == "mu" else math.exp(min(max(float(number), -300.0), 300.0))
        values[name] = min(max(value, SMALLEST_SHAPE), _LARGEST_SHAPE) if name == "shape" else value
    return family(**values)


def _parameters(family: type[GapDistribution]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cast(Any, family)) if each.name not in ("happens", "outside"))


def _with(gap: GapDistribution, happens: float) -> GapDistribution:
    return cast(GapDistribution, replace(cast(Any, gap), happens=happens))


def _start_exponential(moments: Moments) -> GapDistribution:
    return Exponential(moments.total / moments.count)


def _start_gamma(moments: Moments) -> GapDistribution:
    mean = moments.total / moments.count
    # log(shape) - digamma(shape) = log(mean) - mean(log): Newton's method from Minka's approximation.
    target = max(math.log(mean) - moments.total_log / moments.count, 0.5 / _LARGEST_SHAPE)
    shape = (3.0 - target + math.sqrt((target - 3.0) ** 2 + 24.0 * target)) / (12.0 * target)
    for _ in range(20):
        off = math.log(shape) - float(special.digamma(shape)) - target
        slope = 1.0 / shape - float(special.polygamma(1, shape))
        shape = min(max(shape - off / slope, shape / 2.0), 2.0 * shape)
        if abs(off / slope) < 1e-10 * shape:
            break
    shape = min(max(shape, SMALLEST_SHAPE), _LARGEST_SHAPE)
    return Gamma(shape, mean / shape)


def _start_lognormal(moments: Moments) -> GapDistribution:
    return LogNormal(moments.total_log / moments.count, _deviation_of_log(moments))


def _start_weibull(moments: Moments) -> GapDistribution:
    # log t of a Weibull has deviation π / (√6 shape) and mean log(scale) - γ / shape.
    shape = math.pi / (math.sqrt(6.0) * _deviation_of_log(moments))
    shape = min(max(shape, SMALLEST_SHAPE), _LARGEST_SHAPE)
    return Weibull(shape, math.exp(moments.total_log / moments.count + np.euler_gamma / shape))


def _start_uniform(moments: Moments) -> GapDistribution:
    # The extremes of n draws lie on average 1/(n+1) of the range inside the ends.
    spread = max(moments.largest - moments.smallest, 1e-9 * moments.largest)
    beyond = spread / max(moments.count - 1.0, 1.0)
    return Uniform(max(moments.smallest - beyond, 0.0), moments.largest + beyond)


def _deviation_of_log(moments: Moments) -> float:
    mean = moments.total_log / moments.count
    return math.sqrt(max(moments.total_log_square / moments.count - mean**2, 1e-8))


_STARTS: dict[type[GapDistribution], Callable[[Moments], GapDistribution]] = {
    Exponential: _start_exponential,
    Gamma: _start_gamma,
    LogNormal: _start_lognormal,
    Weibull: _start_weibull,
    Uniform: _start_uniform,
}


def _fit_histogram(grouped: _Grouped) -> FamilyFit:
    """A histogram of about equally filled bins, with the product-limit estimate when gaps were censored.

    No interval of time is impossible because nothing was seen in it: one without gaps, the time before the shortest and
    the time beyond the longest each weigh as much as one gap.
    """
    total = float(grouped.counts.sum())
    enough = max(total / _MOST_HISTOGRAM_BINS, min(_FEWEST_PER_HISTOGRAM_BIN, total / 2.0))
    edges, counts = [float(grouped.lower[0])], [0.0]
    before = edges[0]
    for lower, upper, count in zip(grouped.lower, grouped.upper, grouped.counts, strict=True):
        if lower > _EMPTY_INTERVAL * before:  # a wide interval without gaps is a bin of its own
            edges += [float(before), float(lower)] if counts[-1] > 0.0 else [float(lower)]
            counts += [0.0, 0.0] if counts[-1] > 0.0 else [0.0]
        counts[-1] += float(count)
        if counts[-1] >= enough:
            edges.append(float(upper))
            counts.append(0.0)
        before = upper
    if counts[-1] > 0.0:
        edges.append(float(before))
    else:
        counts.pop()
    if edges[0] > grouped.shortest:  # what is shorter than a step of the clock is never recorded
        edges, counts = [0.0, *edges], [0.0, *counts]
    histogram = _product_limit(np.array(edges), np.maximum(counts, _WEIGHT_OF_EMPTY), grouped)
    likelihood = _log_likelihood(histogram, grouped)
    parameters = len(histogram.masses) - 1 + (grouped.never > 0.0)
    return FamilyFit(histogram, likelihood, 2.0 * parameters - 2.0 * likelihood)


def _product_limit(edges: Floats, counts: Floats, grouped: _Grouped) -> Empirical:
    """Masses such that in every bin the share of those still waiting that end there is as it was seen.

    Behind the last bin one more ends: of those that still wait, or all of them, where every wait ends some day.
    """
    place = np.searchsorted(edges, grouped.cut_at) - 1
    cut_off = float(grouped.cut_counts.sum())
    waiting, left, masses = float(counts.sum()) + _WEIGHT_OF_EMPTY + cut_off + grouped.never, 1.0, []
    waiting -= float(grouped.cut_counts[place < 0].sum())
    for i, count in enumerate(counts):
        cut = float(grouped.cut_counts[place == i].sum())
        ending = count / max(waiting - cut / 2.0, count)  # the cut ones waited half the bin
        masses.append(left * ending)
        left *= 1.0 - ending
        waiting -= count + cut
    inside = sum(masses)
    cut = float(grouped.cut_counts[place == len(counts)].sum())
    beyond = left * (_WEIGHT_OF_EMPTY / max(waiting - cut / 2.0, _WEIGHT_OF_EMPTY) if grouped.never else 1.0)
    happens = inside + beyond
    return Empirical(
        tuple(edges), tuple(np.array(masses) / inside), min(happens, 1.0) if grouped.never else 1.0, beyond / happens
    )
