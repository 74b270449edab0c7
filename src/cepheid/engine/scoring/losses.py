"""What missing-event engines ask of a query and its model: units, fixed attributes, and whether they fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from cepheid.errors import ModelError, QueryError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.language.units import convert, unit_named
from cepheid.model.loss_kinds import HOURS
from cepheid.model.loss_model import AFTER, Model
from cepheid.model.segments import OPEN_END, Ends, SegmentItem

NEGLIGIBLE = 1e-16  # a score that integration cannot tell from 0: whether a match is possible must not hang on rounding


def leading_components(bound: BoundQuery) -> frozenset[str]:
    """The components that no positive component stands before: their clock starts at the window's opening."""
    variables = [component.variable for component in bound.components]
    return frozenset(variables[: variables.index(bound.positives[0].variable) + 1])


def gap_scale(bound: BoundQuery, model: Model) -> float:
    """What one step of the time column is in the unit that the model's gaps count."""
    schema = bound.schema
    unit = model.unit
    if unit is None:
        is_timestamp = schema.type_of(schema.time) is DataType.TIME
        return float(convert(1, "microseconds", "seconds")) if is_timestamp else 1.0
    named = unit_named(unit)
    if named is None:
        raise ModelError(
            f"the model counts gaps in {unit!r}, which is not a unit of time", hint="for example 'seconds'"
        )
    if schema.time_unit is None:
        message = f"the model counts gaps in {named}, but it is not known what one step of column '{schema.time}' is"
        raise ModelError(message, hint="pass time_unit='ms', or what it counts")
    return float(convert(1, schema.time_unit, named))


def fixed_attributes(bound: BoundQuery, component: s.Component) -> dict[str, object]:
    """The attributes that the query sets to a constant on a component, such as the reader it stands for."""
    if component.negative:
        parts: Sequence[s.Expression] = [
            part
            for part in bound.branches[0].passed_by(component.variable)
            if all(part in branch.passed_by(component.variable) for branch in bound.branches)
        ]
    else:
        parts = [conjunct.expression for conjunct in bound.conjuncts]
    found: dict[str, Any] = {name: value.value for name, value in bound.fixed}
    if bound.schema.type is not None and component.types is not None and len(component.types) == 1:
        found[bound.schema.type] = component.types[0]
    for part in parts:
        match part:
            case s.Comparison(operator="=", left=s.Attribute(of=of, name=name), right=s.Literal(value=value)) | (
                s.Comparison(operator="=", left=s.Literal(value=value), right=s.Attribute(of=of, name=name))
            ) if of.variable == component.variable:
                found[name] = value
    return found


def day_length(bound: BoundQuery) -> int | None:
    """How many steps of the time column a day has, if that is known."""
    schema = bound.schema
    unit = "microseconds" if schema.type_of(schema.time) is DataType.TIME else schema.time_unit
    return None if unit is None else int(convert(1, "days", unit))


def hour_of(time: int, day: int) -> int:
    """The hour of the day, of which `day` steps of the time column make one."""
    return time % day * HOURS // day


def day_of_losses(bound: BoundQuery, model: Model) -> int:
    """How many steps of the time column a day has, where losses depend on the hour; 0 where they do not."""
    if not model.hours:
        return 0
    day = day_length(bound)
    if not day:
        message = (
            f"the model's losses depend on the hour, but it is not known what one step of '{bound.schema.time}' is"
        )
        raise ModelError(message, hint="pass time_unit='s', or what it counts")
    return day


def unseen_item(
    bound: BoundQuery, model: Model, component: s.Component, window: float, hour: int | None = None
) -> SegmentItem:
    """What a score needs to know of a component that was not seen; the window's length is in the unit of the gaps."""
    leading = window if component.variable in leading_components(bound) else None
    known = model.for_component(component.variable, fixed_attributes(bound, component), leading, hour)
    if not component.negative:
        return SegmentItem("missing", known.loss, known.gap, goes_on=model.goes_on.get(component.variable, 1.0))
    behind = bound.components[bound.components.index(component) + 1 :]
    waiting = next((each for each in behind if not each.negative), None)
    onward = None if waiting is None else model.gaps.get(f"{waiting.variable}{AFTER}{component.variable}")
    return SegmentItem("negative", known.loss, known.gap, onward)


def ends_of(model: Model, unseen: Sequence[tuple[str, SegmentItem]], target: s.Component | None, leading: bool) -> Ends:
    """What a posterior needs to know of the ends of a gap: the component seen behind it, and how trips begin.

    `unseen` are the gap's components with their names, `target` is the one seen behind it.
    """
    missing = [(name, item) for name, item in unseen if item.kind == "missing"]
    waits = any(item.onward is not None for _, item in unseen)
    if not missing and not waits:
        return OPEN_END
    if leading and missing and missing[0][1].loss > 0.0 and not model.knows_share(missing[0][0]):
        name = missing[0][0]
        raise ModelError(
            f"scoring='posterior' needs the share of {name!r} that happens at all: nothing comes before it, so where "
            "it was not seen it may have been lost or may never have happened",
            hint=f"state it with Model(..., happens={{{name!r}: 0.95}}), or fit the model",
        )
    if target is None:
        return Ends(leading=leading)
    known = _known_shares(model, missing, target.variable, leading) if len(missing) == len(unseen) else ()
    return Ends(model.gap_of(target.variable), leading, known)


def _known_shares(
    model: Model, missing: Sequence[tuple[str, SegmentItem]], behind: str, leading: bool
) -> tuple[float, ...]:
    """How often which of a gap's components happened, where the model's `histories` say so.

    They count from a component that was seen. The first one of all may be missing, too, independently of the others.
    """
    names = [name for name, _ in missing]
    if not leading:
        return model.shares_between(names, behind)
    _, first = missing[0]
    lost, absent = first.loss * first.gap.happens, 1.0 - first.gap.happens
    happened = lost / max(lost + absent, 1e-300)
    inner = model.shares_between(names[1:], behind)
    return tuple(share * part for share in inner for part in (1.0 - happened, happened))


def check_missing(bound: BoundQuery, model: object) -> Model:
    """The model, if it and the query are such that missing events have a meaning."""
    hint = "pass model=cepheid.Model(loss=..., gaps=...), or fit one with cepheid.fit"
    if model is None:
        message = "a query with THRESHOLD" if bound.threshold is not None else "a search for missing events"
        raise ModelError(f"{message} needs a loss and gap model", hint=hint)
    if not isinstance(model, Model):
        if isinstance(model, str | PathLike):
            hint = f"load it with cepheid.load_model({str(model)!r})"
        raise ModelError(f"model={model!r} is not a loss and gap model", hint=hint)
    if bound.contiguous:
        message = f"{bound.strategy.value} requires events without gaps, and a missing event is a gap"
        raise QueryError(message, hint="use another strategy, or call without a model", code="model-strategy")
    if bound.has_tied_negations:
        message = "with a loss model negated components are evaluated separately, and a condition relates some of them"
        raise QueryError(message, hint="split it into conditions on one negated component each", code="model-negations")
    if bound.window is None or bound.window.events:
        hint = "add WITHIN, for example WITHIN 12 hours"
        raise QueryError("a query with a loss model needs a window of time", hint=hint, code="model-without-within")
    _check_waits(bound, model)
    return model


def _check_waits(bound: BoundQuery, model: Model) -> None:
    """A gap `z after y` is that of a positive component behind the negated one y, with no positive one between them."""
    follows: dict[str, str] = {}
    negated: list[str] = []
    for component in bound.components:
        if component.negative:
            negated.append(component.variable)
            continue
        follows |= {f"{component.variable}{AFTER}{name}": component.variable for name in negated}
        negated = []
    waits = [name for name in model.gaps if AFTER in name]
    for name in waits:
        if name not in follows:
            known = f"this query allows {', '.join(map(repr, follows))}" if follows else "this query negates nothing"
            raise ModelError(f"gaps: {name!r} is neither a negated component nor one that follows it", hint=known)
        if sum(follows[other] == follows[name] for other in waits) > 1:
            raise ModelError(f"gaps: {follows[name]!r} can follow one negated component only", hint="keep one of them")


def linear_model(model: Model, bound: BoundQuery) -> Model:
    """The model of an expression for one of its linear patterns, where `b#2` is the second event of b.

    A gap `z after y` counts where y stands in front of z there.
    """
    losses, gaps = model.loss, {name: gap for name, gap in model.gaps.items() if AFTER not in name}
    happens, goes_on = dict(model.happens), dict(model.goes_on)
    negated: list[str] = []
    for component in bound.components:
        name, variable = component.variable, component.variable.partition("#")[0]
        if isinstance(losses, Mapping) and variable in losses:
            losses = {**losses, name: losses[variable]}
        if variable in gaps:
            gaps[name] = gaps[variable]
        for shares in (happens, goes_on):
            if variable in shares:
                shares[name] = shares[variable]
        if component.negative:
            negated.append(name)
            continue
        for other in negated:
            waits = model.gaps.get(f"{variable}{AFTER}{other.partition('#')[0]}")
            if waits is not None:
                gaps[f"{name}{AFTER}{other}"] = waits
        negated = []
    return replace(model, loss=losses, gaps=gaps, happens=happens, goes_on=goes_on)
