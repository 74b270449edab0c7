"""From a history to a loss and gap model: which losses are proven, which must be inferred, and what the gaps are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

from cepheid.engine.fitting.components import Known, Learned, between, from_counts, pooled_loss, waited_for
from cepheid.engine.fitting.history import ComponentHistory, History
from cepheid.engine.fitting.hours import with_losses_by_hour
from cepheid.engine.scoring.losses import fixed_attributes, leading_components
from cepheid.errors import ModelError, ModelWarning, closest, warn
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.model import (
    GapDistribution,
    GapStatistics,
    LossEstimate,
    Model,
    estimate_loss,
    fit_from_statistics,
    fit_trips,
)
from cepheid.model.chain import quantiles
from cepheid.model.check import compare_shares
from cepheid.model.fit import FEWEST_GAPS
from cepheid.model.loss_kinds import ByAttribute, Loss
from cepheid.model.loss_model import AFTER, EVERY_OTHER

NEGATIVES = ("pooled", "em")
_HARDLY_ANY = 0.999


@dataclass(frozen=True)
class Fitting:
    """What is stated for a fit, and how it goes about the rest; see `cepheid.fit`."""

    loss: Loss | Mapping[str, Loss] | None = None
    happens: Mapping[str, float] | None = None
    negatives: str = "pooled"
    loss_by: str | None = None
    loss_by_hour: bool = False


def learn(
    bound: BoundQuery,
    history: History,
    asked: Fitting,
    *,
    unit: str | None = None,
    resolution: float,
    window: float,
) -> Model:
    """The model that a history supports.

    Losses and shares are taken from `loss` and `happens` where these state them. Else the lengths of trips tell, of a
    positive component between two others, how many of its events were lost and how many never happened. For the
    first component this cannot be learned: it is taken to have happened always, with a warning. The last one's loss,
    and that of negated ones, is the rate of all that are known together. For negated components `negatives="em"`
    infers loss and `happens` from the lengths of trips instead. Kleene groups are never missing and need no loss.
    With `loss_by`, components that the query fixes to the same value of that attribute (a reader) share one loss; with
    `loss_by_hour`, losses depend on the hour of the day.
    `resolution` is the step of the clock, and the window's length is in the unit of the gaps, too.
    """
    if asked.negatives not in NEGATIVES:
        raise ModelError(f"negatives={asked.negatives!r} is neither 'pooled' nor 'em'")
    if asked.loss_by is not None and asked.loss_by_hour:
        raise ModelError("losses are fitted by an attribute or by the hour, not both", hint="leave one of them out")
    components = [component for component in bound.components if not component.kleene]
    losses, shares = _stated(bound, components, asked.loss), _stated_shares(components, asked.happens)
    known = Known(losses, shares, resolution, asked.negatives)
    _check_seen(components, history)
    found: dict[str, Learned] = {}
    leading = leading_components(bound)
    for component in bound.positives:
        if component.kleene:
            continue
        name, seen = component.variable, history.of(component.variable)
        if name in leading:
            found |= _first(bound, history, known, window)
        elif seen.trips.before.count or seen.trips.unseen.count:
            found[name] = between(name, seen, known)
    pool = _pooled(found)
    last = bound.positives[-1]
    for component in components:
        if component.variable not in found and (component.negative or component in (bound.positives[0], last)):
            seen = history.of(component.variable)
            found |= _pooled_component(component, seen, known, pool, component.variable in leading)
    model = _model(bound, history, found, unit, resolution)
    if asked.loss_by_hour:
        return with_losses_by_hour(bound, history, model, found, list(known.loss))
    return model if asked.loss_by is None else _with_loss_by(bound, model, found, asked.loss_by)


def _with_loss_by(bound: BoundQuery, model: Model, found: Mapping[str, Learned], attribute: str) -> Model:
    """One loss for each value of an attribute: components that the query fixes to the same value share theirs."""
    by_value: dict[object, list[tuple[float, float]]] = {}
    for component in bound.components:
        learned = found.get(component.variable)
        value = fixed_attributes(bound, component).get(attribute)
        if learned is not None and learned.counts is not None and value is not None:
            by_value.setdefault(value, []).append(learned.counts)
    if not by_value:
        raise ModelError(
            f"loss_by={attribute!r}: the query fixes it on no component whose losses the history determines",
            hint=f"add conditions such as b.{attribute} = '...', or leave loss_by out",
        )
    losses = {
        value: estimate_loss(sum(seen for seen, _ in counts), sum(lost for _, lost in counts)).loss
        for value, counts in by_value.items()
    }
    pool = _pooled(found)
    shared = ByAttribute(attribute, losses, pool.loss if pool is not None else None)
    own = {}
    for component in bound.components:
        learned = found.get(component.variable)
        value = fixed_attributes(bound, component).get(attribute)
        if learned is not None and learned.counts is not None and learned.share and value in losses:
            seen, lost = learned.counts
            share = 1.0 - losses[value]
            if any(each.deviates for each in compare_shares(component.variable, share, seen, lost)):
                own[component.variable] = learned.loss  # its own trips say otherwise
    return replace(model, loss={**own, EVERY_OTHER: shared} if own else shared, loss_intervals={})


def _check_seen(components: Sequence[s.Component], history: History) -> None:
    for component in components:
        name = component.variable
        if name in history.components and history.of(name).events == 0.0:
            message = f"no event of the history could be {name!r}"
            raise ModelError(message, hint="is its type right, and are its conditions?")


def _first(bound: BoundQuery, history: History, known: Known, window: float) -> dict[str, Learned]:
    """The first component: where it was not seen, it was lost, unless its loss or its share is stated."""
    component = bound.positives[0]
    name, seen = component.variable, history.of(component.variable)
    if len(bound.positives) == 1:
        return {}
    # The first event of a trip is missed for certain only if it came after the history's beginning.
    reach = _longest(history.of(bound.positives[1].variable).gaps, window)
    counts = (seen.seen_since.count_from(reach), seen.lost_since.count_from(reach))
    if sum(counts) == 0.0 and not (name in known.loss or name in known.happens):
        return {}
    if name not in known.loss and name not in known.happens and counts[1] > 0.0:
        note = (
            f"the history cannot tell whether {name!r} was lost or never happened where it was not seen, since nothing "
            f"comes before it: taken as lost. State loss={{{name!r}: ...}} or happens={{{name!r}: ...}} if you know it"
        )
        warn(note, ModelWarning)
        return {name: replace(from_counts(name, counts, known), note=note)}
    return {name: from_counts(name, counts, known)}


def _pooled_component(
    component: s.Component, seen: ComponentHistory, known: Known, pool: LossEstimate | None, leading: bool
) -> dict[str, Learned]:
    """The last component or a negated one: nothing behind it proves a loss."""
    name, trips = component.variable, seen.trips
    stated = known.loss.get(name)
    if stated is not None:
        pool = LossEstimate(stated, stated, stated, 0.0, 0.0)
    elif component.negative and known.negatives == "em" and not leading:
        inferred = fit_trips(trips, resolution=known.resolution, component=name)
        pool = LossEstimate(inferred.loss, *inferred.loss_interval, 0.0, 0.0)
    elif pool is None:
        raise _nothing_proven(component)
    interval = (pool.low, pool.high) if stated is None else None
    if leading:
        share = known.happens.get(name, None if component.negative else 1.0)
        return {name: Learned(pool.loss, interval, share, None, None)}
    gap = fit_from_statistics(seen.gaps, resolution=known.resolution, component=name, defective=True)
    if component.negative and trips.after.count >= FEWEST_GAPS and trips.unseen.count >= FEWEST_GAPS:
        number = trips.before.count + trips.unseen.count
        loss, note = pooled_loss(name, pool, trips.before.count / number, number, known)
        waits = waited_for(name, seen, gap, loss.loss, known)
        if waits is not None:
            return {name: replace(waits, loss_interval=interval and (loss.low, loss.high), note=note)}
    loss, note = pooled_loss(name, pool, gap.happens, seen.gaps.count + seen.gaps.never, known)
    share = known.happens.get(name, min(1.0, gap.happens / (1.0 - loss.loss)))
    return {name: Learned(loss.loss, interval and (loss.low, loss.high), share, None, gap, note=note)}


def _model(
    bound: BoundQuery, history: History, found: Mapping[str, Learned], unit: str | None, resolution: float
) -> Model:
    """All of it together. A component that waits for a negated one has a second gap, counted from there."""
    gaps: dict[str, GapDistribution] = {}
    shares: dict[str, float] = {}
    for name, each in found.items():
        if each.gap is not None and each.share is not None:
            gaps[name] = _with_happens(each.gap, each.share)
        elif each.share is not None:
            shares[name] = each.share
    for place, component in enumerate(bound.components):
        seen = history.of(component.variable)
        if component.kleene and seen.gaps.count >= FEWEST_GAPS:
            gaps[component.variable] = fit_from_statistics(seen.gaps, resolution=resolution, defective=True)
        learned = found.get(component.variable)
        waiting = next((c.variable for c in bound.components[place + 1 :] if not c.negative), None)
        if learned is None or learned.onward is None or learned.skip is None or waiting not in gaps:
            continue
        happens = gaps[waiting].happens
        gaps[waiting] = _with_happens(learned.skip, happens)
        gaps[f"{waiting}{AFTER}{component.variable}"] = _with_happens(learned.onward, happens)
    order = [c.variable for c in bound.components if c.variable in found]
    return Model(
        loss={name: found[name].loss for name in order},
        gaps=gaps,
        unit=unit,
        loss_intervals={name: i for name in order if (i := found[name].loss_interval) is not None},
        happens=shares,
        happens_intervals={name: i for name in order if (i := found[name].share_interval) is not None},
        goes_on=_going_on(bound, history, found),
        notes=tuple(note for name in order if (note := found[name].note) is not None),
    )


def _going_on(bound: BoundQuery, history: History, found: Mapping[str, Learned]) -> dict[str, float]:
    """How often trips go on to each component or past it, from how often nothing more was seen of them.

    With s the share of trips of which nothing is seen after a component, h and ε its share and loss: before it, that is
    1 - g + g s (1 - h (1 - ε)), if trips go on to it with probability g. The last one's h says itself how many do.
    """
    shares: dict[str, float] = {}
    for component, behind in pairwise(bound.positives[1:]):
        learned, seen, later = found.get(component.variable), *map(history.of, (component.variable, behind.variable))
        if learned is None or learned.share is None or min(seen.resolved, later.resolved) < FEWEST_GAPS:
            continue
        nothing, after = seen.nothing / seen.resolved, later.nothing / later.resolved
        share = (1.0 - nothing) / (1.0 - after * (1.0 - learned.share * (1.0 - learned.loss)))
        if share < _HARDLY_ANY:
            shares[component.variable] = share
    return shares


def _stated_shares(components: Sequence[s.Component], happens: Mapping[str, float] | None) -> dict[str, float]:
    shares = Model(happens=happens or {}).happens
    names = [component.variable for component in components]
    for name, share in shares.items():
        if name not in names:
            guess = closest(name, names)
            hint = f"did you mean {guess!r}?" if guess else f"they are {', '.join(names)}"
            raise ModelError(f"happens names {name!r}, which is no component that may be missing", hint=hint)
        if share == 0.0:
            raise ModelError(
                f"happens={name!r}: 0 means that it never happens", hint="then leave it out of the pattern"
            )
    return dict(shares)


def _stated(bound: BoundQuery, components: Sequence[s.Component], loss: Any) -> dict[str, float]:
    """The losses that the caller knows, in any form that a model takes."""
    if loss is None:
        return {}
    model = Model(loss=loss)
    if isinstance(model.loss, Mapping):
        names = [component.variable for component in components]
        for name in model.loss:
            if name not in (*names, EVERY_OTHER):
                guess = closest(name, names)
                hint = f"did you mean {guess!r}?" if guess else f"they are {', '.join(names)}"
                raise ModelError(f"loss names {name!r}, which is no component that may be missing", hint=hint)
        components = [c for c in components if c.variable in model.loss or EVERY_OTHER in model.loss]
    return {c.variable: model.loss_of(c.variable, fixed_attributes(bound, c)) for c in components}


def _with_happens(gap: GapDistribution, happens: float) -> GapDistribution:
    changed: GapDistribution = replace(cast(Any, gap), happens=happens)
    return changed


def _longest(gaps: GapStatistics, window: float) -> float:
    """The time that hardly any gap exceeds, at most the window."""
    if gaps.count < FEWEST_GAPS:
        return window
    return min([window, *quantiles(fit_from_statistics(gaps, defective=True), (_HARDLY_ANY,), window)])


def _pooled(found: Mapping[str, Learned]) -> LossEstimate | None:
    """The loss of all components whose losses the history determines, together."""
    counts = [each.counts for each in found.values() if each.counts is not None]
    if not counts:
        return None
    return estimate_loss(sum(seen for seen, _ in counts), sum(lost for _, lost in counts))


def _nothing_proven(component: s.Component) -> ModelError:
    return ModelError(
        f"the history shows no loss of any component, so that of {component.variable!r} is not known",
        hint="give a longer history, state it with loss=0.05, or pass negatives='em' if negated events alone get lost",
    )
