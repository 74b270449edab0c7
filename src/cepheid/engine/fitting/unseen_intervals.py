"""What happened between two components that were seen, where several in between were not: told by how long it took.

Where stops depend on each other, or their losses do, the shares and losses of single stops do not say how often two
were lost together. The lengths of such intervals do: each history, those that happened being lost, has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cepheid.engine.fitting.history import History
from cepheid.engine.scoring.losses import fixed_attributes
from cepheid.language.bound import BoundQuery
from cepheid.model import GapDistribution, Model
from cepheid.model.check import FEWEST, chain_at
from cepheid.model.gap import Floats
from cepheid.model.gap_statistics import GapStatistics, bin_edges
from cepheid.model.loss_model import interval_name

MOST_BETWEEN = 3
# Trips that the model without dependence counts for, so that little history changes little.
_WEIGHT_OF_INDEPENDENCE = 20.0
_MOST_ROUNDS = 500
_SETTLED = 1e-6


@dataclass(frozen=True)
class Interval:
    """What the model says of some components that were not seen: every history, by bits, with its share and gaps."""

    missing: tuple[str, ...]
    behind: str
    shares: Floats
    chains: tuple[tuple[GapDistribution, ...], ...]
    known: bool  # does the model know the shares, or are they those of independent components?

    def at(self, edges: Floats) -> Floats:
        """The distribution of its length."""
        return self.shares @ self.each_at(edges)

    def each_at(self, edges: Floats) -> Floats:
        """The distribution of its length, for each history."""
        return np.array([chain_at(chain, edges) for chain in self.chains])


def interval_of(bound: BoundQuery, model: Model, ends: tuple[int, int]) -> Interval | None:
    """The interval between two positive components; None where the model does not say how long it takes."""
    components = bound.components
    places = [components.index(bound.positives[place]) for place in ends]
    between, behind = components[places[0] + 1 : places[1]], components[places[1]].variable
    gaps = [model.gaps.get(component.variable) for component in between]
    around = model.gaps.get(behind)
    plain = not any(component.negative or component.kleene for component in between)
    if around is None or None in gaps or not plain or not 2 <= len(between) <= MOST_BETWEEN:
        return None
    shares, chains = [], []
    for happened in range(1 << len(between)):
        share, chain = 1.0, []
        for place, (component, gap) in enumerate(zip(between, gaps, strict=True)):
            assert gap is not None
            if happened >> place & 1:
                share *= gap.happens * model.loss_of(component.variable, fixed_attributes(bound, component))
                chain.append(gap)
            else:
                share *= 1.0 - gap.happens
        shares.append(share)
        chains.append((*chain, around))
    names = tuple(component.variable for component in between)
    known = model.shares_between(names, behind)
    independent = np.array(shares) / max(sum(shares), 1e-12)
    return Interval(names, behind, np.array(known) if known else independent, tuple(chains), bool(known))


def with_histories(bound: BoundQuery, model: Model, history: History) -> Model:
    """The same model, with what happened between components that were seen wherever the history tells that."""
    found: dict[str, Mapping[str, float]] = {}
    for ends, lengths in sorted(history.intervals.items()):
        interval = interval_of(bound, model, ends)
        if interval is None or lengths.count < FEWEST:
            continue
        shares = _fitted(interval, lengths)
        names = (
            " ".join(name for bit, name in enumerate(interval.missing) if happened >> bit & 1)
            for happened in range(len(shares))
        )
        found[interval_name(interval.missing, interval.behind)] = dict(zip(names, shares.tolist(), strict=True))
    return replace(model, histories=found)


def _fitted(interval: Interval, lengths: GapStatistics) -> Floats:
    """The shares that explain the lengths best, by expectation maximisation."""
    lower, upper = bin_edges(np.array([place for place, _ in lengths.bins], np.int64))
    counts = np.array([count for _, count in lengths.bins])
    at_edges = interval.each_at(np.append(lower, upper)).reshape(len(interval.chains), 2, -1)
    masses = np.maximum(at_edges[:, 1] - at_edges[:, 0], 1e-12)
    prior = _WEIGHT_OF_INDEPENDENCE * (interval.shares + 1e-3) / (1.0 + 1e-3 * len(interval.shares))
    shares = prior / prior.sum()
    for _ in range(_MOST_ROUNDS):
        weighed = shares[:, None] * masses
        updated = prior + (weighed / weighed.sum(axis=0)) @ counts
        new = updated / updated.sum()
        if np.abs(new - shares).max() < _SETTLED:
            return np.asarray(new)
        shares = new
    return np.asarray(shares)
