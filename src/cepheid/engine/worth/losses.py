"""What missing-event engines ask of a query and its model: units, fixed attributes, and whether they fit together."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from cepheid.errors import ModelError, QueryError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.language.units import convert, unit_named
from cepheid.model.loss_model import Model


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
        raise ModelError(f"the model counts gaps in {unit!r}, which is no unit of time", hint="use 'seconds', say")
    if schema.time_unit is None:
        told = f"the model counts gaps in {named}, but it is not known what one step of column '{schema.time}' is"
        raise ModelError(told, hint="pass time_unit='ms', or what it counts")
    return float(convert(1, schema.time_unit, named))


def fixed_attributes(bound: BoundQuery, component: s.Component) -> dict[str, Any]:
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


def check_missing(bound: BoundQuery, model: Any) -> Model:
    """The model, if it and the query are such that missing events have a meaning."""
    hint = "pass model=cepheid.Model(loss=..., gaps=...), or fit one with cepheid.fit"
    if model is None:
        told = "a query with THRESHOLD" if bound.syntax.threshold is not None else "a search for missing events"
        raise ModelError(f"{told} needs a loss and gap model", hint=hint)
    if not isinstance(model, Model):
        if isinstance(model, str | PathLike):
            hint = f"load it with cepheid.load_model({str(model)!r})"
        raise ModelError(f"model={model!r} is no loss and gap model", hint=hint)
    if bound.contiguous:
        told = f"{bound.strategy.value} asks for events without gaps, and a missing event is a gap"
        raise QueryError(told, hint="use another strategy, or call without a model", code="model-strategy")
    if bound.has_tied_negations:
        told = "with a loss model negated components are judged one by one, and a condition ties some together"
        raise QueryError(told, hint="split it into conditions on one negated component each", code="model-negations")
    if bound.window is None or bound.window.events:
        hint = "add WITHIN, for example WITHIN 12 hours"
        raise QueryError("a query with a loss model needs a window of time", hint=hint, code="model-without-within")
    return model
