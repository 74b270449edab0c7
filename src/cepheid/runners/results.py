"""From row numbers to result rows: Arrow `take`, never row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.budget import checkpoint
from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.flink_runs import NOBODY, matches_of
from cepheid.engine.data.matches import COMPLETE, MISSING, Chosen, Forecasts, Matches
from cepheid.engine.values.columnwise import value
from cepheid.engine.values.operators import Column, without_nan
from cepheid.engine.values.plain import sum_may_overflow, value_column
from cepheid.errors import LimitError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.language.typing import is_duration, type_of
from cepheid.language.zoned import is_wall
from cepheid.language.zones import IN_UTC
from cepheid.plan.flink_automaton import FlinkAutomaton

MAX_LIST = 2**31 - 1  # Arrow's list offsets are 32 bits wide


def assemble(bound: BoundQuery, table: pa.Table, matches: Matches) -> pa.Table:
    """The result table: when each match starts and ends, its events or what RETURN picks, and its probabilities."""
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    starts, ends = _edges(bound, table, matches)
    columns["match_start"], columns["match_end"] = starts, ends
    if bound.returns is None:
        for component, chosen in zip(bound.positives, matches.chosen, strict=True):
            columns[component.variable] = _events_of(bound, table, chosen)
    else:
        for name, expression in bound.returns:
            columns[name] = _returned(bound, table, matches, expression)
    if matches.forecasts is not None:
        return _forecast(bound, table, matches, columns)
    exact = bound.schema.is_timed_exactly
    # Where only existence is unsure, the worlds that contain a match are what its probability is.
    probability = matches.confidence if matches.probability is None and exact else matches.probability
    if probability is not None:
        columns["probability"] = pa.array(probability)
    if matches.confidence is not None and not exact:
        columns["confidence"] = pa.array(matches.confidence)
        columns["earliest"] = _instants(starts.type, matches.earliest)
        columns["latest"] = _instants(starts.type, matches.latest)
    return pa.table({name: _whole(column) for name, column in columns.items()})


def result_schema(bound: BoundQuery, schema: pa.Schema, *, probability: bool, confidence: bool) -> pa.Schema:
    """The schema of the result, without running anything: that of an empty result."""
    nothing = np.empty(0, np.int64)
    chosen = tuple(Chosen(nothing, np.zeros(1, np.int64) if c.kleene else None) for c in bound.positives)
    numbers = np.empty(0, np.float64)
    empty = Matches(
        chosen,
        nothing,
        probability=numbers if probability else None,
        confidence=numbers if confidence else None,
        earliest=nothing if confidence else None,
        latest=nothing if confidence else None,
        forecasts=Forecasts(nothing, nothing, nothing, nothing) if bound.forecast is not None else None,
    )
    return assemble(bound, schema.empty_table(), empty).schema


def assemble_steps(automaton: FlinkAutomaton, table: pa.Table, matches: Matches, partial: bool) -> pa.Table:
    """The result of a Flink pattern: when each match starts and ends, and a column for each step."""
    clock, group, steps = table.column(automaton.schema.time), matches.in_order, automaton.lists
    columns = {"match_start": _taken(clock, group.first()), "match_end": _taken(clock, group.last())}
    for step, chosen in zip(steps, matches.by_label(list(steps.values())), strict=True):
        columns[step] = _events(table, chosen, null_if_empty=False)
    if partial:
        assert matches.waiting is not None
        complete, names = matches.waiting == COMPLETE, automaton.waits_for
        columns["timed_out"] = pa.array(~complete)
        columns["waiting_for"] = pa.array([names[at] if at >= 0 else None for at in matches.waiting], pa.string())
        columns["given_up"] = _instants(clock.type, matches.completion, complete)
    return pa.table(columns)


def steps_schema(automaton: FlinkAutomaton, schema: pa.Schema, partial: bool) -> pa.Schema:
    """The schema of that, without running anything: that of an empty table."""
    return assemble_steps(automaton, schema.empty_table(), matches_of(NOBODY, np.zeros(0, np.int64)), partial).schema


def duration_columns(bound: BoundQuery) -> list[str]:
    """The columns that hold lengths of time, as numbers of microseconds."""
    return [name for name, each in bound.returns or () if is_duration(each, bound.schema)]


def _forecast(
    bound: BoundQuery, table: pa.Table, matches: Matches, columns: dict[str, pa.Array | pa.ChunkedArray]
) -> pa.Table:
    """Partial matches with what they wait for, how likely they are to complete, and when."""
    told = matches.forecasts
    assert told is not None
    awaited = pa.array([each.waiting_for for each in bound.beginnings], pa.string())
    kind = table.schema.field(bound.schema.time).type
    columns["forecast_at"] = _instants(kind, matches.completion)
    columns["probability"] = pa.array(matches.probability)
    columns["waiting_for"] = awaited.take(pa.array(told.beginning))
    for name in ("expected", "earliest", "latest"):
        columns[name] = _instants(kind, getattr(told, name))
    return pa.table({name: _whole(column) for name, column in columns.items()})


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _indices(rows: Int64s) -> pa.Array:
    absent = rows == MISSING
    return pa.array(rows, mask=absent) if absent.any() else pa.array(rows)


def _taken(column: pa.ChunkedArray, rows: Int64s | pa.Array) -> pa.Array:
    checkpoint()
    taken = _whole(column.take(rows if isinstance(rows, pa.Array) else _indices(rows)))
    return taken.cast(taken.type.value_type) if pa.types.is_dictionary(taken.type) else taken


def _events_of(bound: BoundQuery, table: pa.Table, chosen: Chosen) -> pa.Array:
    """The events of a component; a missing group is NULL, a group that an expression left out is empty."""
    names = [name for name in table.column_names if name not in bound.schema.nested]
    return _events(table.select(names), chosen, null_if_empty=bound.is_linear)


def _events(table: pa.Table, chosen: Chosen, null_if_empty: bool) -> pa.Array:
    """Events as structs, NULL for a missing one; or lists of them."""
    rows = _indices(chosen.rows)
    fields = [_taken(column, rows) for column in table.columns]
    structs = pa.StructArray.from_arrays(fields, table.column_names, mask=rows.is_null() if rows.null_count else None)
    return structs if chosen.offsets is None else _listed(chosen.offsets, structs, null_if_empty)


def _listed(offsets: Int64s, values: pa.Array, null_if_empty: bool) -> pa.Array:
    if offsets[-1] > MAX_LIST:
        raise LimitError("the lists of the result hold over two billion events", hint="match fewer events at a time")
    missing = np.diff(offsets) == 0 if null_if_empty else np.zeros(len(offsets) - 1, bool)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values, mask=pa.array(missing) if missing.any() else None
    )


def _edges(bound: BoundQuery, table: pa.Table, matches: Matches) -> tuple[pa.Array, pa.Array]:
    """The times of the first and the last event that was seen."""
    column, in_order = table.column(bound.schema.time), bound.is_linear
    first, last = matches.first_rows(in_order=in_order), matches.last_rows(in_order=in_order)
    return _taken(column, first), _taken(column, last)


def _instants(kind: pa.DataType, values: Int64s | None, unknown: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Instants in the type of the time column; those of dates have a time of day."""
    column = pa.array(values, pa.int64(), mask=unknown)
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(kind)
    return column.cast(pa.timestamp("us")) if pa.types.is_date(kind) else column


def _returned(bound: BoundQuery, table: pa.Table, matches: Matches, expression: s.Expression) -> Column:
    by_name = dict(zip(bound.place_of, matches.chosen, strict=True))
    match expression:
        case s.Reference(variable=variable):
            return _events_of(bound, table, by_name[variable])
        case s.Attribute(of=of, name=name) if expression.default is None:
            chosen = by_name[of.variable]
            if chosen.offsets is not None and of.element in (s.Element.SINGLE, s.Element.ALL):
                return _listed(chosen.offsets, _taken(table.column(name), chosen.rows), bound.is_linear)
            return without_nan(_taken(table.column(name), _rows(chosen, of.element)))

    def resolve(node: s.Expression) -> Column:
        match node:
            case s.Length(variable=variable):
                return pa.array(_sizes(by_name[variable]))
            case s.Call(function=function, arguments=(argument,)):
                return _aggregate(function.lower(), argument, table, by_name, bound)
            case s.Attribute(of=of, name=name, default=default):
                found = _taken(value_column(table.column(name)), _rows(by_name[of.variable], of.element))
                return found if default is None else pc.coalesce(found, value(default, resolve))
        raise TypeError(f"RETURN cannot hold {type(node).__name__}")

    result = value(expression, resolve)
    result = result.cast(pa.bool_()) if pa.types.is_null(result.type) else result  # which every system can keep
    if isinstance(result, pa.Scalar):
        result = pa.array([result.as_py()] * len(matches), result.type)
    match type_of(expression, bound.schema):
        case DataType.TIME:
            zone = getattr(table.schema.field(bound.schema.time).type, "tz", None)
            if zone is None and bound.schema.zone != IN_UTC:
                zone = bound.schema.zone
            return result.cast(pa.timestamp("us", None if is_wall(expression, bound.schema) else zone))
        case DataType.DATE:
            return result.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
    return result


def _rows(chosen: Chosen, element: s.Element) -> Int64s:
    return chosen.last() if element is s.Element.LAST else chosen.first()


def _sizes(chosen: Chosen) -> Int64s:
    return np.ones(len(chosen.rows), np.int64) if chosen.offsets is None else np.diff(chosen.offsets)


def _aggregate(
    function: str, argument: s.Expression, table: pa.Table, by_name: dict[str, Chosen], bound: BoundQuery
) -> Column:
    assert function in AGGREGATES
    (variable,) = s.variables_of(argument)
    chosen = by_name[variable]
    assert chosen.offsets is not None
    sizes = np.diff(chosen.offsets)
    if isinstance(argument, s.Reference):
        return pa.array(sizes)
    flattened = value(argument, lambda node: _taken(value_column(table.column(node.name)), chosen.rows))  # type: ignore[attr-defined]
    missing = sizes == 0  # a missing group contributes nothing
    if function in ("first", "last"):
        edges = chosen.offsets[:-1] if function == "first" else chosen.offsets[1:] - 1
        return flattened.take(pa.array(edges, mask=missing))
    aggregate = AGGREGATES[function]
    if (
        aggregate.name == "avg"
        or aggregate.column is None
        or (function == "sum" and sum_may_overflow(flattened, sizes))
    ):
        listed = _listed(chosen.offsets, _whole(flattened), bound.is_linear).to_pylist()
        kind = pa.float64() if aggregate.result is DataType.FLOAT else flattened.type
        return pa.array([aggregate.over(values) for values in listed], kind)
    grouped = pa.table({"match": np.repeat(np.arange(len(sizes)), sizes), "value": _whole(flattened)})
    done = grouped.group_by("match", use_threads=False).aggregate([("value", aggregate.column)])
    values = _whole(done.column(f"value_{aggregate.column}"))
    if missing.any():
        values = values.take(pa.array(np.cumsum(~missing) - 1, mask=missing))
    return values.fill_null(0) if aggregate.counts else values
