"""What does a history tell of one component: how often it is lost, how often it happens, and after which gap?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cepheid.engine.fitting.history import ComponentHistory
from cepheid.model import GapDistribution, end_waits, estimate_loss, fit_from_statistics, fit_trips
from cepheid.model.fit import FEWEST_GAPS

Interval = tuple[float, float]


@dataclass(frozen=True)
class Known:
    """What the caller states, and how the rest is to be learned."""

    loss: dict[str, float]
    happens: dict[str, float]
    resolution: float
    negatives: str = "pooled"


@dataclass(frozen=True)
class Learned:
    """Of one component: `counts` are events seen and lost, where the history tells them.

    `onward` and `skip` are the gap of the next positive component from a negated one, and without it.
    """

    loss: float
    loss_interval: Interval | None
    share: float | None
    share_interval: Interval | None
    gap: GapDistribution | None
    counts: tuple[float, float] | None = None
    onward: GapDistribution | None = None
    skip: GapDistribution | None = None


def between(name: str, seen: ComponentHistory, known: Known) -> Learned:
    """A positive component between two others: the lengths of trips tell what was lost from what never happened."""
    trips = seen.trips
    counts = (trips.before.count, trips.unseen.count)
    gap = fit_from_statistics(trips.before, resolution=known.resolution, component=name)
    if name in known.loss or name in known.happens or trips.unseen.count < FEWEST_GAPS:
        # So few were not seen that it does not matter which of them were lost.
        return _with_gap(from_counts(name, counts, known), gap)
    found = fit_trips(trips, bypass=True, resolution=known.resolution, component=name)
    lost = found.happens * found.loss * sum(counts)
    return Learned(found.loss, found.loss_interval, found.happens, found.happens_interval, gap, (counts[0], lost))


def from_counts(name: str, counts: tuple[float, float], known: Known) -> Learned:
    """From how often a component was seen and not seen alone: with a stated loss or share, or as if it always happened.

    What is seen is what happens and is not lost.
    """
    seen, unseen = counts
    if name in known.loss:
        loss = known.loss[name]
        if name in known.happens or seen + unseen == 0.0:
            return Learned(loss, None, known.happens.get(name, 1.0), None, None)
        estimate = estimate_loss(seen, unseen, component=name)
        low, high = ((1.0 - edge) / (1.0 - loss) for edge in (estimate.high, estimate.low))
        share = min((1.0 - estimate.loss) / (1.0 - loss), 1.0)
        return Learned(loss, None, share, (min(low, 1.0), min(high, 1.0)), None)
    share = known.happens.get(name, 1.0)
    happened = max(share * (seen + unseen), seen)
    estimate = estimate_loss(seen, happened - seen, component=name)
    return Learned(estimate.loss, (estimate.low, estimate.high), share, None, None, (seen, happened - seen))


def waited_for(name: str, seen: ComponentHistory, gap: GapDistribution, loss: float, known: Known) -> Learned | None:
    """A negated component that the next one waits for; None if that comes when it likes, as AYAC has it.

    If the next component comes when it likes, the share of trips with the negated one grows with their length as the
    gap says. Where it does not, trips are of two kinds: through the negated component, or past it.
    """
    found = fit_trips(seen.trips, loss=loss, resolution=known.resolution, component=name)
    if not end_waits(seen.lengths, seen.trips.unseen, gap, found):
        return None
    share = known.happens.get(name, found.happens)
    return Learned(loss, None, share, found.happens_interval, found.gap, None, found.after, found.skip)


def _with_gap(learned: Learned, gap: GapDistribution) -> Learned:
    fields: dict[str, Any] = vars(learned) | {"gap": gap}
    return Learned(**fields)
