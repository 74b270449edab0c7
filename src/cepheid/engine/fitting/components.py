"""What does a history tell of one component: how often it is lost, how often it happens, and after which gap?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cepheid.engine.fitting.history import ComponentHistory
from cepheid.model import GapDistribution, LossEstimate, end_waits, estimate_loss, fit_from_statistics, fit_trips
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

    `note` says what is assumed. `onward` and `skip` are the gap of the next positive component from a negated one, and
    without it.
    """

    loss: float
    loss_interval: Interval | None
    share: float | None
    share_interval: Interval | None
    gap: GapDistribution | None
    counts: tuple[float, float] | None = None
    note: str | None = None
    onward: GapDistribution | None = None
    skip: GapDistribution | None = None


def between(name: str, seen: ComponentHistory, known: Known) -> Learned:
    """A positive component between two others: the lengths of trips tell what was lost from what never happened."""
    trips = seen.trips
    counts = (trips.before.count, trips.unseen.count)
    gap = fit_from_statistics(trips.before, resolution=known.resolution, component=name)
    if name in known.loss or name in known.happens:
        return replace(from_counts(name, counts, known), gap=gap)
    if trips.unseen.count < FEWEST_GAPS:
        return replace(_too_few_to_tell(name, counts), gap=gap)
    found = fit_trips(trips, bypass=True, resolution=known.resolution, component=name)
    lost = found.happens * found.loss * sum(counts)
    return Learned(found.loss, found.loss_interval, found.happens, found.happens_interval, gap, (counts[0], lost))


def _too_few_to_tell(name: str, counts: tuple[float, float]) -> Learned:
    """So few were not seen that their lengths do not tell which of them were lost: half of them are taken to be.

    A share of exactly 1 would make each of them certain.
    """
    seen, unseen = counts
    most = estimate_loss(seen, unseen, component=name).high
    loss, share = unseen / 2.0 / (seen + unseen / 2.0), (seen + unseen / 2.0) / (seen + unseen)
    note = (
        f"the history is too short to estimate whether {name!r} was lost or never happened where it was not seen "
        f"({unseen:g} of {seen + unseen:g} trips): half lost and half never happened is assumed"
    )
    remark = note if unseen else None
    return Learned(loss, (0.0, most), share, (1.0 - most, 1.0), None, (seen, unseen / 2.0), remark)


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


def pooled_loss(
    name: str, pool: LossEstimate, share: float, count: float, known: Known
) -> tuple[LossEstimate, str | None]:
    """The loss of all components together, unless this one was seen more often than that leaves room for, and a note.

    `share` of `count` trips showed it. What was seen was not lost: direct evidence wins over what the others say.

    >>> pool = LossEstimate(0.8, 0.78, 0.82, 20.0, 80.0)
    >>> print(*pooled_loss("c", pool, 0.98, 1000.0, Known({}, {}, 1.0)), sep="\\n")
    LossEstimate(loss=0.02, low=0.0, high=0.0306..., seen=980.0, lost=20.0)
    'c' takes its own loss, at most 0.0307: with that of the other components, 0.8, 20.0% would be seen, and 98.0% were
    """
    possible = known.happens.get(name, 1.0)
    seen = min(share / possible, 1.0) * count
    if name in known.loss or count < FEWEST_GAPS or seen == 0.0:
        return pool, None
    own = estimate_loss(seen, count - seen)
    if pool.low <= own.high:
        return pool, None
    note = (
        f"{name!r} takes its own loss, at most {own.high:.3g}: with that of the other components, {pool.loss:.3g}, "
        f"{possible * (1.0 - pool.loss):.1%} would be seen, and {share:.1%} were"
    )
    return replace(own, low=0.0), note


def waited_for(name: str, seen: ComponentHistory, gap: GapDistribution, loss: float, known: Known) -> Learned | None:
    """A negated component that the next one waits for; None if that comes when it likes, as AYAC has it.

    If the next component comes when it likes, the share of trips with the negated one grows with their length as the
    gap says. Where it does not, trips are of two kinds: through the negated component, or past it.
    """
    found = fit_trips(seen.trips, loss=loss, resolution=known.resolution, component=name)
    if not end_waits(seen.lengths, seen.trips.unseen, gap, found):
        return None
    share = known.happens.get(name, found.happens)
    return Learned(loss, None, share, found.happens_interval, found.gap, None, onward=found.after, skip=found.skip)
